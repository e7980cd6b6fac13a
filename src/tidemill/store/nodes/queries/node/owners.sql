-- The addresses of these accounts, for lists of their nodes; of a deleted one there is none.
SELECT id, address FROM account WHERE id = ANY (:account_ids::uuid[])
