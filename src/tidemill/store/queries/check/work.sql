-- What must hold for jobs, in one snapshot: every open task waits or has a lease, and not both; every job has counted
-- its ended tasks; and no money is held for a job that is over.
WITH opened AS (
    SELECT t.id, q.task_id IS NOT NULL AS waits, l.task_id IS NOT NULL AS is_held
    FROM task AS t LEFT JOIN task_queue AS q ON q.task_id = t.id LEFT JOIN lease AS l ON l.task_id = t.id
    WHERE t.ended IS NULL
), counted AS (
    SELECT job_id, count(*) AS tasks, count(ended) AS ended FROM task GROUP BY job_id
), over AS (
    SELECT (SELECT count(*) FROM task_queue AS q JOIN task AS t ON t.id = q.task_id WHERE t.ended IS NOT NULL)
         + (SELECT count(*) FROM lease AS l JOIN task AS t ON t.id = l.task_id WHERE t.ended IS NOT NULL) AS tasks
)
SELECT (SELECT count(*) FROM opened) AS opened,
       (SELECT count(*) FROM opened WHERE waits = is_held) + (SELECT tasks FROM over) AS adrift,
       (SELECT count(*) FROM job AS j JOIN counted AS c ON c.job_id = j.id
        WHERE j.tasks <> c.tasks OR j.completed + j.failed + j.cancelled <> c.ended) AS miscounted,
       (SELECT count(*) FROM job AS j JOIN hold AS h ON h.id = j.hold_id
        WHERE j.ended_at IS NOT NULL AND h.captured_uc + h.released_uc < h.amount_uc) AS held
