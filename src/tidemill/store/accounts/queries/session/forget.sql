-- Delete sessions that ended long ago, with their tokens.
DELETE FROM session WHERE id IN (
    SELECT id FROM session WHERE expires_at < :over_before ORDER BY expires_at LIMIT :limit FOR UPDATE SKIP LOCKED
) RETURNING id
