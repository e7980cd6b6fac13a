-- Keep a new key, unless there is one. Of two processes that come first, the unique column lets one in.
INSERT INTO verification_key (id, private, made_at) VALUES (:id, :sealed, :now) ON CONFLICT DO NOTHING
