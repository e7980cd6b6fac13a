-- Attempts that the nodes of a process are to stop. Each is told once: a node that misses it stops at its deadline.
DELETE FROM call_off AS c USING presence AS p
WHERE p.node_id = c.node_id AND p.process_id = :process_id
RETURNING c.attempt_id, c.node_id, c.lease, c.reason
