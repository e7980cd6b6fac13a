-- What was said of tasks that wait no more. One that comes back into the queue meanwhile is told anew.
DELETE FROM waiting_for AS w
WHERE NOT EXISTS (SELECT FROM task_queue AS q WHERE q.rank IN (0, 1, 2) AND q.task_id = w.task_id)
RETURNING w.task_id
