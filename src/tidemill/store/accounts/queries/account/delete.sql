-- Remove who the account belonged to. The row stays, because books and events refer to its id.
UPDATE account SET address = '', address_key = id::text, password_hash = '', deleted_at = :now
WHERE id = :id AND deleted_at IS NULL
