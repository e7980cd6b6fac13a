-- Ask an operator about a result whose audit came to nothing: its lease waits until somebody has decided. The caller's
-- transaction holds the lease's row, so nobody judges it meanwhile. Only once.
WITH held AS (
    UPDATE lease SET judge_until = 'infinity'
    WHERE attempt_id = :attempt_id AND tries = :lease AND state = 'submitted'
    RETURNING attempt_id
)
UPDATE audit AS a SET asked_at = :now, doubt = :doubt
FROM held AS h WHERE a.id = h.attempt_id AND a.asked_at IS NULL AND a.judged_at IS NULL
RETURNING a.id
