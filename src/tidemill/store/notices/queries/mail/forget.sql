-- Delete letters written before an instant, a batch at a time; waiting letters are never deleted.
DELETE FROM mail WHERE id IN (
    SELECT id FROM mail WHERE made_at < :made_before AND state <> 'waiting' LIMIT :limit FOR UPDATE SKIP LOCKED
)
RETURNING id
