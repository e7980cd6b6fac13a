-- The keys that nodes sign with, which never change, and whether the nodes are the operator's own.
SELECT id AS node_id, key, account_id AS owner_id, house FROM node WHERE id = ANY (:ids::uuid[])
