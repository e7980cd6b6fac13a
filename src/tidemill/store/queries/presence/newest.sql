-- How nodes were at their last beat.
SELECT node_id, beat_at AS at, cpu_pct, memory_used_mib, disk_free_mib, round_trip_ms, utilisation_pct, device_used_mib,
       temperature_c, power_w
FROM presence
WHERE node_id = ANY(:node_ids::uuid[]) AND beat_at IS NOT NULL
