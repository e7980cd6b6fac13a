-- Delete processes that ended or were lost before an instant, a batch at a time.
DELETE FROM process WHERE id IN (
    SELECT id FROM process WHERE state <> 'running' AND seen_at < :seen_before LIMIT :limit FOR UPDATE SKIP LOCKED
)
RETURNING id
