-- The beats of a node since an instant, newest first. A row's id is never older than what it tells, so days before that
-- instant need not be looked at.
SELECT node_id, at, cpu_pct, memory_used_mib, disk_free_mib, round_trip_ms, utilisation_pct, device_used_mib,
       temperature_c, power_w
FROM telemetry
WHERE node_id = :node_id AND at >= :since AND id >= :since_id
ORDER BY at DESC
LIMIT :limit
