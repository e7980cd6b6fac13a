-- Nodes were told what there was to tell. A newer link was told by its own welcome, and what was wished since is left.
UPDATE presence AS p SET told = u.wishes
FROM unnest(:node_ids::uuid[], :generations::bigint[], :wishes::bigint[]) AS u (node_id, generation, wishes)
WHERE p.node_id = u.node_id AND p.generation = u.generation AND p.told < u.wishes
