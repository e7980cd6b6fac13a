-- Keep a duty for longer while its work goes on.
UPDATE duty SET expires_at = :expires_at WHERE name = :name AND token = :token AND expires_at IS NOT NULL RETURNING token
