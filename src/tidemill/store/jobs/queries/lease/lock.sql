-- Lock the leases that nodes hold on attempts, ordered by id, with what judging and paying need. A node that names
-- another's attempt locks nothing. Audits have no job, so they have no hold and are always wanted. Each row is looked
-- up by itself: leases come and go, and the planner may still believe that there are none.
SELECT l.attempt_id, l.task_id, l.job_id, l.account_id, l.node_id, l.owner_id, l.rank, l.failures, l.tries, l.state,
       l.batch_id, l.place, l.hourly_uc, l.quoted_ms, l.work_ms, l.offered_at, l.begun_at, l.heard_at, l.house,
       t.expected, t.cost_max_uc, j.hold_id,
       j.closing IS NULL AS wanted, coalesce(j.private, false) AS private, coalesce(j.kind, '') AS kind
FROM (
    SELECT * FROM unnest(:attempt_ids::text::uuid[], :node_ids::text::uuid[]) AS s (attempt_id, node_id) ORDER BY s.attempt_id
) AS s
CROSS JOIN LATERAL (
    SELECT * FROM lease AS l WHERE l.attempt_id = s.attempt_id AND l.node_id = s.node_id LIMIT 1 FOR UPDATE
) AS l
CROSS JOIN LATERAL (SELECT expected, cost_max_uc FROM task WHERE id = l.task_id LIMIT 1) AS t
LEFT JOIN LATERAL (SELECT hold_id, closing, private, kind FROM job WHERE id = l.job_id LIMIT 1) AS j ON true
