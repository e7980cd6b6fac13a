-- Keep a new key pair, unless there is one. If two processes try first, the unique column accepts one.
INSERT INTO pool_identity (id, seed, made_at) VALUES (:id, :sealed, :now) ON CONFLICT DO NOTHING
