-- Which nodes say that they have which of these digests. What a node has said meanwhile does no harm: it is a hint.
SELECT digest, array_agg(node_id ORDER BY node_id) AS node_ids
FROM node_cache
WHERE digest = ANY (:digests::text[])
GROUP BY digest
