-- Write what was measured of devices, if they are still the devices that were asked. The caller has locked the node.
UPDATE device AS d
SET measured_mib = m.mib, measured_ops_per_s = m.ops_per_s, nvlink_ppm = m.nvlink_ppm, measured_at = :now
FROM unnest(:indexes::smallint[], :names::text[], :memories::bigint[], :mibs::bigint[], :speeds::bigint[],
            :nvlinks::integer[]) AS m (index, name, memory_mib, mib, ops_per_s, nvlink_ppm)
WHERE d.node_id = :node_id AND d.index = m.index AND d.name = m.name AND d.memory_mib = m.memory_mib
