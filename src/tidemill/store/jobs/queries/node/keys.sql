-- The keys that nodes sign with, which never change, and whether the nodes are the operator's own.
SELECT id, key, account_id, house FROM node WHERE id = ANY (:ids::uuid[])
