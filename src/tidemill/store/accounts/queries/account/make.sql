-- Insert a new account. If two use one address at once, the unique index accepts one, and the other gets no row.
INSERT INTO account (id, address, address_key, password_hash, password_at, roles, operator_since, language,
                     created_at)
VALUES (:id, :address, :address_key, :password_hash, :now, :roles, :operator_since, :language, :now)
ON CONFLICT (address_key) WHERE deleted_at IS NULL DO NOTHING
RETURNING id
