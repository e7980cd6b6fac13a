-- The beats of a node, newest first, before an instant or up to now.
SELECT cpu_pct, memory_used_mib, disk_free_mib, round_trip_ms, utilisation_pct, device_used_mib, temperature_c, power_w,
       at
FROM telemetry
WHERE node_id = :node_id AND at < coalesce(:before::timestamptz, 'infinity')
ORDER BY at DESC
LIMIT :limit
