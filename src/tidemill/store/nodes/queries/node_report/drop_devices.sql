-- Delete devices that their machines no longer have, or have replaced, with their measurements. The caller has locked
-- the rows of their nodes.
DELETE FROM device AS d
WHERE d.node_id = ANY(:node_ids::uuid[])
  AND NOT EXISTS (
      SELECT FROM unnest(:owners::uuid[], :indexes::smallint[], :kinds::text[], :names::text[], :uuids::text[],
                         :memories::bigint[]) AS c (node_id, index, kind, name, uuid, memory_mib)
      WHERE c.node_id = d.node_id AND c.index = d.index AND c.kind = d.kind AND c.name = d.name AND c.uuid = d.uuid
        AND c.memory_mib = d.memory_mib
  )
