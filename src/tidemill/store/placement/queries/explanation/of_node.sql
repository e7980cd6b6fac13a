-- The last explanations that mention a node. So few are kept that a scan is cheap.
SELECT id, job_id, at, kind, policy, lower_wins, nodes, task_ids, node_ids, weighed
FROM explanation
WHERE :node_id::uuid = ANY (node_ids) AND (:after::uuid IS NULL OR id < :after)
ORDER BY id DESC
LIMIT :limit
