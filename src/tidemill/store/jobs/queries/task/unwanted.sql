-- Take the tasks of closed jobs out of the queue.
DELETE FROM task_queue AS q
USING (
    SELECT rank, task_id FROM task_queue
    WHERE job_id IN (SELECT id FROM job WHERE closing IS NOT NULL AND ended_at IS NULL)
    ORDER BY rank, task_id LIMIT :limit FOR UPDATE SKIP LOCKED
) AS u
WHERE q.rank = u.rank AND q.task_id = u.task_id
RETURNING q.task_id, q.job_id, false AS is_audit
