-- Try a letter again that was given up or put aside. If two ask at once, the second finds it waiting already and gets
-- no row.
UPDATE mail SET state = 'waiting', tries = 0, next_at = :now, tried_since = :now, last_error = ''
WHERE id = :id AND state IN ('failed', 'outbox') AND parameters IS NOT NULL
RETURNING id
