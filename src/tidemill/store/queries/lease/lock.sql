-- The leases of attempts, locked in the order of their ids, with what is needed to judge and to pay. Audits have no job,
-- so nothing is held for them, and they are always wanted.
SELECT l.attempt_id, l.task_id, l.job_id, l.account_id, l.node_id, l.owner_id, l.rank, l.failures, l.tries, l.state,
       l.batch_id, l.place, l.hourly_uc, l.quoted_ms, l.offered_at, t.body, t.expected, t.cost_max_uc,
       j.hold_id, j.closing IS NULL AS wanted
FROM (
    SELECT * FROM lease WHERE attempt_id = ANY (:attempt_ids::uuid[]) ORDER BY attempt_id FOR UPDATE
) AS l
JOIN task AS t ON t.id = l.task_id
LEFT JOIN job AS j ON j.id = l.job_id
