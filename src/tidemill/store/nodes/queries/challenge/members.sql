-- The nodes of an owner that can be challenged now, with their claims and measurements. Locked, ordered by id, because
-- each gets an instruction; a node that goes offline meanwhile is late, and asked again.
SELECT n.id, n.machine::text AS machine,
       (SELECT coalesce(jsonb_object_agg(d.index, d.measured_ops_per_s), '{}') FROM device AS d
        WHERE d.node_id = n.id AND d.measured_ops_per_s IS NOT NULL) AS earlier
FROM node AS n JOIN presence AS p ON p.node_id = n.id
WHERE n.account_id = :account_id AND n.removed_at IS NULL AND n.suspended_reason IS NULL AND n.machine IS NOT NULL
  AND p.process_id IS NOT NULL AND p.offline_since IS NULL
ORDER BY n.id FOR NO KEY UPDATE OF n
