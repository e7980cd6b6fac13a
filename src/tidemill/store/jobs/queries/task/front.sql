-- The front of the queue in one value, the most urgent first, of each task its rank, its tries and its id: they are many,
-- and looked at several times a second. Read only: whoever places one finds out whether it still waits.
SELECT coalesce(string_agg(int2send(q.rank) || int2send(q.tries) || uuid_send(q.task_id), '' ORDER BY q.rank, q.task_id), '')
       AS front
FROM (SELECT rank, tries, task_id FROM task_queue ORDER BY rank, task_id LIMIT :limit) AS q
