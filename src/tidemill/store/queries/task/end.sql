-- Tasks end, and their jobs count it; the jobs are locked until the transaction ends, so each end is counted once.
WITH ended AS (
    UPDATE task AS t SET ended = e.ended, attempt_id = e.attempt_id, ended_at = :now
    FROM unnest(:ids::text::uuid[], :ends::text::text[], :attempt_ids::text::uuid[]) AS e (id, ended, attempt_id)
    WHERE t.id = e.id AND t.ended IS NULL
    RETURNING t.job_id, t.ended
), counted AS (
    SELECT job_id, count(*) FILTER (WHERE ended = 'completed') AS completed,
           count(*) FILTER (WHERE ended = 'failed') AS failed, count(*) FILTER (WHERE ended = 'cancelled') AS cancelled
    FROM ended GROUP BY job_id
), spent AS (
    SELECT * FROM unnest(:job_ids::text::uuid[], :spent_uc::text::bigint[]) AS s (job_id, spent_uc)
)
UPDATE job AS j
SET completed = j.completed + c.completed, failed = j.failed + c.failed, cancelled = j.cancelled + c.cancelled,
    spent_uc = j.spent_uc + coalesce(s.spent_uc, 0)
FROM counted AS c LEFT JOIN spent AS s USING (job_id)
WHERE j.id = c.job_id
RETURNING j.id, j.account_id, j.state, j.closing, j.hold_id, j.tasks, j.completed, j.failed, j.cancelled, j.spent_uc
