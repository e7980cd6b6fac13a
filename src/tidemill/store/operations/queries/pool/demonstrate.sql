-- Make the pool a demonstration, only while nobody uses it. It stays one.
UPDATE pool SET demonstration = true, set_up_at = :now, set_up_sha256 = NULL WHERE set_up_at IS NULL RETURNING id
