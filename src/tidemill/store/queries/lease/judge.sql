-- Take results in hand that wait to be checked. SKIP LOCKED: what another takes at this moment is his. Whoever took one
-- and died has it until then, and no longer.
WITH due AS (
    SELECT attempt_id FROM lease
    WHERE state = 'submitted' AND (judge_until IS NULL OR judge_until <= :now)
    ORDER BY attempt_id LIMIT :limit FOR UPDATE SKIP LOCKED
), taken AS (
    UPDATE lease AS l SET judge = :judge, judge_until = :until FROM due AS d WHERE l.attempt_id = d.attempt_id
    RETURNING l.attempt_id, l.node_id, l.tries, l.task_id, l.batch_id, l.place
)
SELECT k.attempt_id, k.node_id, k.tries, k.place, t.body, t.expected, b.body AS batch, n.house
FROM taken AS k JOIN task AS t ON t.id = k.task_id JOIN receipt_batch AS b ON b.id = k.batch_id
JOIN node AS n ON n.id = k.node_id
ORDER BY k.attempt_id
