-- Let go of a duty and note when it was done. A stale token changes nothing.
UPDATE duty SET expires_at = NULL, done_at = :done_at
WHERE name = :name AND token = :token AND expires_at IS NOT NULL
RETURNING token
