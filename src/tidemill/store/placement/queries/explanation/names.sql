-- The names and owners of nodes.
SELECT id, name, account_id AS owner_id FROM node WHERE id = ANY (:ids::uuid[])
