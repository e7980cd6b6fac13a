-- Which nodes report which of these digests. A newer report does no harm: this is a hint.
SELECT digest, array_agg(node_id ORDER BY node_id) AS node_ids
FROM node_cache
WHERE digest = ANY (:digests::text[])
GROUP BY digest
