-- Leases of closed jobs that have delivered nothing, locked, ordered by id.
SELECT l.attempt_id, l.task_id, l.job_id, l.account_id, l.node_id, l.owner_id, l.rank, l.failures, l.tries, l.state,
       l.batch_id, l.place, l.hourly_uc, l.quoted_ms, l.offered_at
FROM lease AS l
WHERE l.state <> 'submitted' AND l.job_id IN (SELECT id FROM job WHERE closing IS NOT NULL AND ended_at IS NULL)
ORDER BY l.attempt_id
LIMIT :limit
FOR UPDATE OF l
