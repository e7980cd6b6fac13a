-- When the first node of each of these owners has joined, also if it has been removed since: nobody is new twice.
SELECT account_id, min(joined_at) AS since FROM node WHERE account_id = ANY (:owner_ids::uuid[]) GROUP BY account_id
