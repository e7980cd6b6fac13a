-- What nodes are called, and whose they are.
SELECT id, name, account_id FROM node WHERE id = ANY (:ids::uuid[])
