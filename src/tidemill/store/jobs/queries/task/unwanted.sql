-- Take the tasks of closed jobs out of the queue.
DELETE FROM task_queue AS q
USING (
    SELECT rank, task_id FROM task_queue
    WHERE job_id IN (SELECT id FROM job WHERE closing IS NOT NULL AND ended_at IS NULL)
    ORDER BY rank, task_id LIMIT :limit FOR UPDATE SKIP LOCKED
) AS u
WHERE q.rank = u.rank AND q.task_id = u.task_id
RETURNING q.task_id, q.job_id, (SELECT t.cost_max_uc FROM task AS t WHERE t.id = q.task_id) AS cost_max_uc,
          (SELECT j.kind FROM job AS j WHERE j.id = q.job_id) AS kind, q.tries
