-- A new secret, unless the second factor is on: then no row comes back.
INSERT INTO account_totp AS t (account_id, secret) VALUES (:account_id, :secret)
ON CONFLICT (account_id) DO UPDATE SET secret = :secret, used_step = 0 WHERE t.on_since IS NULL
RETURNING account_id
