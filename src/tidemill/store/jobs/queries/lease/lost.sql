-- Attempts of nodes that are offline or removed.
SELECT l.attempt_id, l.node_id, l.tries
FROM lease AS l JOIN presence AS p ON p.node_id = l.node_id JOIN node AS n ON n.id = l.node_id
WHERE l.state <> 'submitted' AND (p.offline_since IS NOT NULL OR n.removed_at IS NOT NULL)
ORDER BY l.attempt_id LIMIT :limit
