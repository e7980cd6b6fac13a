-- End links. A link that is no longer the node's, or that another process has taken, is left alone. Rows are locked
-- ordered by id.
UPDATE presence AS p SET process_id = NULL, linked_at = NULL
FROM (
    SELECT p.node_id
    FROM unnest(:node_ids::text::uuid[], :generations::text::bigint[]) AS g (node_id, generation)
    JOIN presence AS p ON p.node_id = g.node_id AND p.generation = g.generation
    WHERE p.process_id = :process_id
    ORDER BY p.node_id
    FOR NO KEY UPDATE OF p
) AS ours
WHERE p.node_id = ours.node_id
