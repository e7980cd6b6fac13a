-- A new account. Two at once with one address: the unique index lets one through, the other gets no row.
INSERT INTO account (id, address, address_key, password_hash, password_at, roles, language, created_at)
VALUES (:id, :address, :address_key, :password_hash, :now, :roles, :language, :now)
ON CONFLICT (address_key) WHERE deleted_at IS NULL DO NOTHING
RETURNING id
