-- Lease results that wait to be checked, and those whose audit has ended, unless an operator is asked and has still time: in turns by customer, the oldest of each first,
-- and of each at most so many with those that are in hand already. SKIP LOCKED: a result that another process takes at
-- this moment is skipped, and one that it has taken since we looked is not the same any more. A result taken by a process
-- that no longer runs is free at once; by a process that hangs, after a while.
WITH waiting AS (
    SELECT l.attempt_id, l.judge_until, row_number() OVER (PARTITION BY l.account_id ORDER BY l.attempt_id)
           + (SELECT count(*) FROM unnest(:held_of::uuid[]) AS h (account_id) WHERE h.account_id = l.account_id) AS turn
    FROM lease AS l
    WHERE l.state = 'submitted' AND l.attempt_id <> ALL (:held_ids::uuid[])
      AND (l.judge_until IS NULL OR l.judge_until <= :now
           OR (l.judge_until <> 'infinity' AND (:mine AND l.judge = :judge OR NOT EXISTS (
               SELECT FROM process AS p WHERE p.id = l.judge AND p.state = 'running')))
           OR (l.judge_until = 'infinity' AND l.attempt_id IN (
               SELECT a.id FROM audit AS a WHERE a.ended_at IS NOT NULL AND a.judged_at IS NULL
                 AND (a.asked_at IS NULL OR a.decided IS NOT NULL OR a.asked_at < :asked_before))))
), due AS (
    SELECT l.attempt_id FROM waiting AS w JOIN lease AS l ON l.attempt_id = w.attempt_id
    WHERE w.turn <= :of_one_customer AND l.state = 'submitted' AND l.judge_until IS NOT DISTINCT FROM w.judge_until
    ORDER BY w.turn, w.attempt_id LIMIT :limit FOR UPDATE OF l SKIP LOCKED
), taken AS (
    UPDATE lease AS l SET judge = :judge, judge_until = :until FROM due AS d WHERE l.attempt_id = d.attempt_id
    RETURNING l.attempt_id, l.account_id, l.node_id, l.owner_id, l.tries, l.task_id, l.batch_id, l.place, l.offered_at
)
SELECT k.attempt_id, k.task_id, k.account_id, k.node_id, k.owner_id, k.tries, k.place, k.offered_at, t.body, t.expected,
       b.body AS batch, b.at AS received_at, n.house,
       (SELECT f.digest FROM artefact AS f WHERE f.attempt_id = k.attempt_id) AS uploaded,
       coalesce(g.model, g.name, '') AS model, coalesce(g.memory_mib, 0) AS memory_mib,
       coalesce(g.measured_ops_per_s, 0) AS gpu_ops_per_s,
       (SELECT coalesce(sum(c.measured_ops_per_s), 0)::bigint FROM device AS c
        WHERE c.node_id = k.node_id AND c.kind = 'cpu') AS cpu_ops_per_s,
       r.ended AS audit_ended, e.id AS audit_attempt_id, e.reason AS audit_reason, e.place AS audit_place,
       x.body AS audit_batch, a.first_found,
       coalesce((SELECT sum(c.measured_ops_per_s) FROM device AS c WHERE c.node_id = h.id AND c.kind = 'cpu')
                / greatest(1, h.measured_cores), 0)::float8 AS audit_core_ops_per_s, a.decided, a.decided_for,
       coalesce(a.asked_at IS NOT NULL AND a.decided IS NULL, false) AS is_overdue
FROM taken AS k JOIN task AS t ON t.id = k.task_id JOIN receipt_batch AS b ON b.id = k.batch_id
JOIN node AS n ON n.id = k.node_id
LEFT JOIN LATERAL (
    SELECT d.model, d.name, d.memory_mib, d.measured_ops_per_s FROM device AS d
    WHERE d.node_id = k.node_id AND d.kind <> 'cpu' ORDER BY d.measured_ops_per_s DESC NULLS LAST LIMIT 1
) AS g ON true
LEFT JOIN audit AS a ON a.id = k.attempt_id
LEFT JOIN task AS r ON r.id = a.task_id
LEFT JOIN attempt AS e ON e.id = r.attempt_id
LEFT JOIN node AS h ON h.id = e.node_id
LEFT JOIN receipt_batch AS x ON x.id = e.batch_id
ORDER BY k.attempt_id
