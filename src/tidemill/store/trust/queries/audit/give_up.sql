-- Take audits out of the queue that no house node has taken for too long. Whoever deletes the row has the task: an
-- audit that is being placed at this moment is placed.
DELETE FROM task_queue AS q
USING (
    SELECT w.rank, w.task_id
    FROM audit AS a JOIN task_queue AS w ON w.rank = ANY (:ranks::smallint[]) AND w.task_id = a.task_id
    WHERE a.ended_at IS NULL AND a.begun_at < :before
    ORDER BY w.rank, w.task_id LIMIT :limit FOR UPDATE OF w SKIP LOCKED
) AS u
WHERE q.rank = u.rank AND q.task_id = u.task_id
RETURNING q.task_id, q.job_id AS id
