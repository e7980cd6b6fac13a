-- Replace the digests in the caches of nodes. The caller has locked the presence of each node, so a node has one report
-- at a time; rows that stay are not written again.
WITH told AS (
    SELECT node_id, digest FROM unnest(:owners::uuid[], :digests::text[]) AS row (node_id, digest)
), gone AS (
    DELETE FROM node_cache AS kept
    WHERE kept.node_id = ANY (:node_ids::uuid[])
      AND NOT EXISTS (SELECT FROM told WHERE told.node_id = kept.node_id AND told.digest = kept.digest)
)
INSERT INTO node_cache (node_id, digest)
SELECT node_id, digest FROM told
ON CONFLICT DO NOTHING
