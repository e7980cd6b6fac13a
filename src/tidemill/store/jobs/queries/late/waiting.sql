-- Lock the rows that tasks have in the queue, if they have one: nobody else places them until the transaction ends.
SELECT q.task_id, q.rank, q.failures, q.tries FROM task_queue AS q
WHERE q.rank = ANY (:ranks::smallint[]) AND q.task_id = ANY (:task_ids::uuid[])
ORDER BY q.rank, q.task_id
FOR UPDATE
