-- Count the ended tasks of jobs. Lock jobs, ordered by id, until the transaction ends: each end is counted once, and
-- two transactions that count for the same jobs do not deadlock.
WITH counted AS (
    SELECT j.id, c.completed, c.failed, c.cancelled, c.spent_uc
    FROM unnest(
        :ids::text::uuid[], :completed::text::integer[], :failed::text::integer[], :cancelled::text::integer[],
        :spent_uc::text::bigint[]
    ) AS c (id, completed, failed, cancelled, spent_uc)
    JOIN job AS j ON j.id = c.id
    ORDER BY j.id
    FOR NO KEY UPDATE OF j
)
UPDATE job AS j
SET completed = j.completed + c.completed, failed = j.failed + c.failed, cancelled = j.cancelled + c.cancelled,
    spent_uc = j.spent_uc + c.spent_uc
FROM counted AS c
WHERE j.id = c.id
RETURNING j.id, j.account_id, j.state, j.closing, j.hold_id, j.tasks, j.completed, j.failed, j.cancelled, j.spent_uc
