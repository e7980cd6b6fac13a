-- Lock the presence of these nodes, ordered by id: other processes that admit, hear or remove them wait.
SELECT p.node_id
FROM presence AS p JOIN node AS n ON n.id = p.node_id
WHERE n.key = ANY (:keys::bytea[])
ORDER BY p.node_id
FOR NO KEY UPDATE OF p
