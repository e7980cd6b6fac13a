-- What the tasks of a job wait for, longest waiting first; only tasks that still wait.
SELECT w.counts, w.nodes, w.looked, w.soon, t.number AS task, q.since, w.at AS seen_at
FROM waiting_for AS w
JOIN task_queue AS q ON q.rank IN (0, 1, 2) AND q.task_id = w.task_id
JOIN task AS t ON t.id = w.task_id
WHERE w.job_id = :job_id
ORDER BY q.since, w.task_id
LIMIT :limit
