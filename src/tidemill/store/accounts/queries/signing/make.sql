-- Insert a new signing key, unless another process has just made one.
INSERT INTO signing_key (id, private, public, made_at)
SELECT :id, :private, :public, :now WHERE NOT EXISTS (SELECT FROM signing_key WHERE made_at > :unless_since)
RETURNING id
