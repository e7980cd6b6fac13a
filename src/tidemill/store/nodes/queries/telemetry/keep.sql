-- Append beats under new ids, so writers never conflict.
INSERT INTO telemetry (id, node_id, at, cpu_pct, memory_used_mib, disk_free_mib, round_trip_ms, utilisation_pct,
                       device_used_mib, temperature_c, power_w)
SELECT b.id, b.node_id, timestamptz 'epoch' + b.at_us * interval '1 microsecond', b.cpu_pct, b.memory_used_mib,
       b.disk_free_mib, b.round_trip_ms, b.utilisation_pct::smallint[], b.device_used_mib::bigint[],
       b.temperature_c::smallint[], b.power_w::bigint[]
FROM unnest(
         :ids::text::uuid[], :beat_node_ids::text::uuid[], :ats::text::bigint[], :cpus::text::smallint[],
         :memories::text::bigint[], :disks::text::bigint[], :round_trips::text::bigint[], :utilisations::text::text[],
         :uses::text::text[], :temperatures::text::text[], :powers::text::text[]
     ) AS b (id, node_id, at_us, cpu_pct, memory_used_mib, disk_free_mib, round_trip_ms, utilisation_pct,
             device_used_mib, temperature_c, power_w)
