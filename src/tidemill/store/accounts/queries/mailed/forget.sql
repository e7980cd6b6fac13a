-- Delete expired mailed tokens.
DELETE FROM mailed_token WHERE id IN (
    SELECT id FROM mailed_token WHERE expires_at < :before ORDER BY expires_at LIMIT :limit FOR UPDATE SKIP LOCKED
) RETURNING id
