-- The leases that nodes hold of attempts, locked in the order of their ids, with what is needed to judge and to pay. What a
-- node says of another's attempt locks nothing. Audits have no job, so nothing is held for them, and they are always wanted.
SELECT l.attempt_id, l.task_id, l.job_id, l.account_id, l.node_id, l.owner_id, l.rank, l.failures, l.tries, l.state,
       l.batch_id, l.place, l.hourly_uc, l.quoted_ms, l.offered_at, t.expected, t.cost_max_uc, j.hold_id,
       j.closing IS NULL AS wanted, coalesce(j.private, false) AS private
FROM (
    SELECT l.*
    FROM unnest(:attempt_ids::text::uuid[], :node_ids::text::uuid[]) AS s (attempt_id, node_id)
    JOIN lease AS l ON l.attempt_id = s.attempt_id AND l.node_id = s.node_id
    ORDER BY l.attempt_id
    FOR UPDATE OF l
) AS l
JOIN task AS t ON t.id = l.task_id
LEFT JOIN job AS j ON j.id = l.job_id
