-- Forget who it was. The row stays, since books and events name its id.
UPDATE account SET address = '', address_key = id::text, password_hash = '', deleted_at = :now
WHERE id = :id AND deleted_at IS NULL
RETURNING id
