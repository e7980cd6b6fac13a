-- All undelivered attempts of these nodes. Each node is looked up by itself, as a lease is.
SELECT l.number, l.attempt_id, l.node_id
FROM unnest(:node_ids::text::uuid[]) AS n (id)
CROSS JOIN LATERAL (
    SELECT number, attempt_id, node_id FROM lease
    WHERE node_id = n.id AND state IN ('offered', 'accepted', 'running') OFFSET 0
) AS l
