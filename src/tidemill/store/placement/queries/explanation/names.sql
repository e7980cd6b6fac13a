-- The names and owners of nodes.
SELECT id, name, account_id FROM node WHERE id = ANY (:ids::uuid[])
