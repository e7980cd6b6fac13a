-- Undelivered attempts after a number, with their nodes, whichever process holds the links.
SELECT number, attempt_id, node_id
FROM lease
WHERE number > :after AND state IN ('offered', 'accepted', 'running')
ORDER BY number LIMIT :limit
