-- The devices of nodes, ordered by index.
SELECT node_id, index, kind, name, uuid, model, memory_mib, driver, cuda, power_limit_w, ecc, failing,
       measured_mib, measured_ops_per_s, nvlink_ppm, measured_at
FROM device WHERE node_id = ANY (:node_ids::uuid[])
ORDER BY node_id, index
