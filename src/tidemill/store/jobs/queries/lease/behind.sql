-- Attempts behind a number that nodes are offered, whoever holds their links.
SELECT number, attempt_id, node_id
FROM lease
WHERE number > :after AND state IN ('offered', 'accepted', 'running')
ORDER BY number LIMIT :limit
