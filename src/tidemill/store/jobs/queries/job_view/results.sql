-- The results of a job's tasks after a number: the attempt that decided the task, its receipt, and the artefact it
-- uploaded, if the customer still keeps it.
SELECT t.id AS task_id, t.number AS task, t.ended, a.id AS attempt_id, a.lease::integer AS lease,
       coalesce(a.reason, '') AS reason, nullif(a.verdict, '') AS verdict,
       CASE WHEN t.ended = 'completed' THEN b.body END AS batch, a.place::integer AS place,
       CASE WHEN t.ended = 'completed' THEN (SELECT f.id FROM artefact AS f WHERE f.attempt_id = a.id LIMIT 1) END
           AS artefact_id
FROM (
    SELECT id, number, ended, attempt_id FROM task
    WHERE job_id = :job_id AND number > :after AND ended IS NOT NULL
    ORDER BY number LIMIT :limit
) AS t
LEFT JOIN attempt AS a ON a.id = t.attempt_id
LEFT JOIN receipt_batch AS b ON b.id = a.batch_id
ORDER BY t.number
