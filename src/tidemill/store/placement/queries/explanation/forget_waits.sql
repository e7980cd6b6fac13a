-- Delete what was noted about tasks that no longer wait. A task that returns to the queue meanwhile is explained anew.
DELETE FROM waiting_for AS w
WHERE NOT EXISTS (SELECT FROM task_queue AS q WHERE q.rank IN (0, 1, 2) AND q.task_id = w.task_id)
RETURNING w.task_id
