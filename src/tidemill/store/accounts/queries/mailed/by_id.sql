-- Use up the token whose code was right.
DELETE FROM mailed_token WHERE id = :id RETURNING id, purpose, address, account_id, password_hash, roles, language
