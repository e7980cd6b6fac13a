-- Set the password.
UPDATE account SET password_hash = :password_hash, password_at = :now WHERE id = :id AND deleted_at IS NULL
