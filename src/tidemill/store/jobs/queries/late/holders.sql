-- Other leases on these tasks that have delivered nothing yet, locked, ordered by id.
SELECT l.attempt_id, l.task_id, l.node_id, l.rank, l.failures, l.tries, l.state
FROM lease AS l
WHERE l.task_id = ANY (:task_ids::uuid[]) AND l.state <> 'submitted'
ORDER BY l.attempt_id
FOR UPDATE
