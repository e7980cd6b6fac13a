-- Mark processes as lost that have been silent since an instant. Any number of processes may do this at once: the row
-- lock lets only one of them change a row, so each loss is told once.
UPDATE process SET state = 'lost'
WHERE id IN (
    SELECT id FROM process WHERE state = 'running' AND seen_at < :silent_since LIMIT :limit FOR UPDATE SKIP LOCKED
)
RETURNING id
