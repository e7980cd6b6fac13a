-- Keep a new key, unless there is one. If two processes try first, the unique column accepts one.
INSERT INTO verification_key (id, private, made_at) VALUES (:id, :sealed, :now) ON CONFLICT DO NOTHING
