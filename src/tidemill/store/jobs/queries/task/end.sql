-- End tasks. Returns how many tasks of each job ended in which state; a task ends only once.
WITH ended AS (
    UPDATE task AS t SET ended = e.ended, attempt_id = e.attempt_id, ended_at = :now
    FROM unnest(:ids::text::uuid[], :ends::text::text[], :attempt_ids::text::uuid[]) AS e (id, ended, attempt_id)
    WHERE t.id = e.id AND t.ended IS NULL
    RETURNING t.job_id, t.ended
)
SELECT job_id, ended, count(*) AS tasks FROM ended GROUP BY job_id, ended
