-- Other leases on these tasks that have delivered nothing yet, locked, ordered by id.
SELECT l.attempt_id, l.task_id, l.job_id, l.account_id, l.node_id, l.owner_id, l.rank, l.failures, l.tries, l.state,
       l.batch_id, l.place, l.hourly_uc, l.quoted_ms, l.work_ms, l.offered_at, l.begun_at, l.heard_at, l.house,
       t.expected, t.cost_max_uc, j.hold_id,
       j.closing IS NULL AS wanted, j.private, j.kind
FROM lease AS l JOIN task AS t ON t.id = l.task_id JOIN job AS j ON j.id = l.job_id
WHERE l.task_id = ANY (:task_ids::uuid[]) AND l.state <> 'submitted'
ORDER BY l.attempt_id
FOR UPDATE OF l
