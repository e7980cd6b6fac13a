-- Leases of closed jobs that have delivered nothing, locked, ordered by id, with what `lease/lock.sql` tells of a lease.
SELECT l.attempt_id, l.task_id, l.job_id, l.account_id, l.node_id, l.owner_id, l.rank, l.failures, l.tries, l.state,
       l.batch_id, l.place, l.hourly_uc, l.quoted_ms, l.work_ms, l.offered_at, l.begun_at, l.heard_at, l.house,
       t.expected, t.cost_max_uc, j.hold_id,
       j.closing IS NULL AS wanted, j.private, j.kind
FROM lease AS l
CROSS JOIN LATERAL (SELECT expected, cost_max_uc FROM task WHERE id = l.task_id LIMIT 1) AS t
CROSS JOIN LATERAL (SELECT hold_id, closing, private, kind FROM job WHERE id = l.job_id LIMIT 1) AS j
WHERE l.state <> 'submitted' AND l.job_id IN (SELECT id FROM job WHERE closing IS NOT NULL AND ended_at IS NULL)
ORDER BY l.attempt_id
LIMIT :limit
FOR UPDATE OF l
