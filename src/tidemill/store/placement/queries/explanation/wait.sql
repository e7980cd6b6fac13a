-- Store what tasks wait for, as last seen, and delete what was noted about tasks of these jobs that no longer wait. If
-- two write about one task, the later one counts.
WITH said AS (
    SELECT * FROM jsonb_to_recordset(:waits::jsonb) AS w (
        job_id uuid, task_id uuid, at_us bigint, nodes integer, looked integer, soon integer, counts jsonb
    )
), over AS (
    DELETE FROM waiting_for AS w
    WHERE w.job_id IN (SELECT job_id FROM said)
      AND NOT EXISTS (SELECT FROM said AS s WHERE s.task_id = w.task_id)
      AND NOT EXISTS (SELECT FROM task_queue AS q WHERE q.rank IN (0, 1, 2) AND q.task_id = w.task_id)
)
INSERT INTO waiting_for (job_id, task_id, at, nodes, looked, soon, counts)
SELECT job_id, task_id, timestamptz 'epoch' + at_us * interval '1 microsecond', nodes, looked, soon, counts
FROM said
ON CONFLICT (job_id, task_id) DO UPDATE
SET at = EXCLUDED.at, nodes = EXCLUDED.nodes, looked = EXCLUDED.looked, soon = EXCLUDED.soon, counts = EXCLUDED.counts
