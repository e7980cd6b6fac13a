-- The front of the queue in one value, most urgent first, with each task's rank, tries and id: it is long, and read
-- several times a second. Read only: whoever places a task finds out whether it still waits.
SELECT coalesce(string_agg(int2send(q.rank) || int2send(q.tries) || uuid_send(q.task_id), '' ORDER BY q.rank, q.task_id), '')
       AS front
FROM (SELECT rank, tries, task_id FROM task_queue ORDER BY rank, task_id LIMIT :limit) AS q
