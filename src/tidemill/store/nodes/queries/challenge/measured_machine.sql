-- Write what was measured of a machine: what it claims later counts only up to this. The caller has locked the node.
UPDATE node SET measured_cores = :cores, measured_mib = :memory_mib WHERE id = :node_id
