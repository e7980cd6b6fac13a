-- Take tasks out of the queue for nodes that already have the result. Whoever deletes the row has the task.
DELETE FROM task_queue AS q
WHERE q.rank = ANY (:ranks::smallint[]) AND q.task_id = ANY (:task_ids::uuid[])
RETURNING q.task_id, q.rank, q.failures, q.tries
