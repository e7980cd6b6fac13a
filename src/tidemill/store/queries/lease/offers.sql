-- What nodes whose links a process holds are offered, behind a number; or all that some of them hold, whatever its number.
SELECT l.number, l.attempt_id, l.task_id, l.node_id, l.tries AS lease, l.deadline_at, t.body
FROM lease AS l JOIN presence AS p ON p.node_id = l.node_id JOIN task AS t ON t.id = l.task_id
WHERE p.process_id = :process_id AND l.state IN ('offered', 'accepted', 'running')
  AND (l.number > :after OR l.node_id = ANY (:node_ids::uuid[]))
ORDER BY l.number LIMIT :limit
