-- Store a new secret. Returns no row if the second factor is on.
INSERT INTO account_totp AS t (account_id, secret) VALUES (:account_id, :secret)
ON CONFLICT (account_id) DO UPDATE SET secret = :secret, used_step = 0 WHERE t.on_since IS NULL
RETURNING account_id
