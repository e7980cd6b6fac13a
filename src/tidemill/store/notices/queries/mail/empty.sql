-- Empty the text of old unsent letters, a batch at a time. SKIP LOCKED: another process may be emptying the rest.
UPDATE mail SET parameters = NULL
WHERE id IN (
    SELECT id FROM mail
    WHERE state IN ('failed', 'outbox') AND parameters IS NOT NULL AND made_at < :made_before
    LIMIT :limit FOR UPDATE SKIP LOCKED
)
RETURNING id
