-- Keep a new key pair, unless there is one. Of two processes that come first, the unique column lets one in.
INSERT INTO pool_identity (id, seed, made_at) VALUES (:id, :sealed, :now) ON CONFLICT DO NOTHING
