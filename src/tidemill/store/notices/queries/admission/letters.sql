-- The accounts to write to about the machines that joined for them.
SELECT id, address, language FROM account WHERE id = ANY (:ids::uuid[]) AND deleted_at IS NULL
