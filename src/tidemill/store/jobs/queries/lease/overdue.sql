-- Attempts that are past their deadline, counting only the time in which we listened.
SELECT l.attempt_id, l.node_id, l.tries
FROM lease AS l, listening AS h
WHERE l.state <> 'submitted' AND l.due_us < h.listened_us
ORDER BY l.attempt_id LIMIT :limit
