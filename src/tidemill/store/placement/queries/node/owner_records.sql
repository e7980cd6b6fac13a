-- When the first node of each of these owners joined, even if it was removed since, so that nobody is new twice; and
-- how many of their results were verified.
SELECT n.account_id AS owner_id, min(n.joined_at) AS since, coalesce(max(r.verified), 0) AS verified
FROM node AS n LEFT JOIN owner_record AS r ON r.owner_id = n.account_id
WHERE n.account_id = ANY (:owner_ids::uuid[])
GROUP BY n.account_id
