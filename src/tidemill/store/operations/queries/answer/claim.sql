-- Claim a key. If two requests use the same key, the second waits until the first has committed (and then finds its
-- answer) or failed (and then has the key to itself).
INSERT INTO answer (caller, route, key, body_sha256, given_at)
VALUES (:caller, :route, :key, :body_sha256, :now)
ON CONFLICT DO NOTHING
RETURNING key
