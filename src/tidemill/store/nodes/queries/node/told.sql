-- Note that nodes were told what they had to be told. A newer link was told by its own welcome, and later wishes stay
-- to be told. Rows are locked ordered by id, as everywhere, to avoid deadlocks.
UPDATE presence AS p SET told = ours.wishes
FROM (
    SELECT p.node_id, u.wishes
    FROM unnest(:node_ids::uuid[], :generations::bigint[], :wishes::bigint[]) AS u (node_id, generation, wishes)
    JOIN presence AS p ON p.node_id = u.node_id AND p.generation = u.generation
    WHERE p.told < u.wishes
    ORDER BY p.node_id
    FOR NO KEY UPDATE OF p
) AS ours
WHERE p.node_id = ours.node_id
