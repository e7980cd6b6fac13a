-- Note that links are alive, and keep one beat of each that beat: as its newest, and in telemetry. Only current links
-- count: a newer link has another generation, and the row lock makes us wait for whoever is changing the row and read
-- it again. Rows are locked ordered by id, as everywhere, to avoid deadlocks. A row that was freed because its
-- process seemed lost is taken back. Telemetry keeps one beat per node in ten seconds, however often it beats. Returns
-- the links that count, whether the node was offline, and whether it has alerts.
WITH heard AS (
    SELECT * FROM unnest(:node_ids::text::uuid[], :generations::text::bigint[]) AS h (node_id, generation)
), beat AS (
    SELECT b.id, b.node_id, timestamptz 'epoch' + b.at_us * interval '1 microsecond' AS at, b.cpu_pct, b.memory_used_mib,
           b.disk_free_mib, b.round_trip_ms, b.utilisation_pct::smallint[] AS utilisation_pct,
           b.device_used_mib::bigint[] AS device_used_mib, b.temperature_c::smallint[] AS temperature_c,
           b.power_w::bigint[] AS power_w
    FROM unnest(
             :ids::text::uuid[], :beat_node_ids::text::uuid[], :ats::text::bigint[], :cpus::text::smallint[],
             :memories::text::bigint[], :disks::text::bigint[], :round_trips::text::bigint[],
             :utilisations::text::text[], :uses::text::text[], :temperatures::text::text[], :powers::text::text[]
         ) AS b (id, node_id, at_us, cpu_pct, memory_used_mib, disk_free_mib, round_trip_ms, utilisation_pct,
                 device_used_mib, temperature_c, power_w)
), ours AS (
    SELECT p.node_id, p.offline_since, p.beat_at, n.account_id
    FROM heard AS h
    JOIN presence AS p ON p.node_id = h.node_id AND p.generation = h.generation
    JOIN node AS n ON n.id = p.node_id AND n.life <> 'deregistered'
    ORDER BY p.node_id
    FOR NO KEY UPDATE OF p
), noted AS (
    UPDATE presence AS p
    SET heard_at = greatest(p.heard_at, :now), heard_listened_us = l.listened_us, offline_since = NULL,
        back_online_at = CASE WHEN o.offline_since IS NULL THEN p.back_online_at ELSE :now END,
        process_id = :process_id,
        linked_at = CASE WHEN p.process_id = :process_id THEN p.linked_at ELSE :now END,
        beat_at = coalesce(b.at, p.beat_at), cpu_pct = coalesce(b.cpu_pct, p.cpu_pct),
        memory_used_mib = coalesce(b.memory_used_mib, p.memory_used_mib),
        disk_free_mib = coalesce(b.disk_free_mib, p.disk_free_mib),
        round_trip_ms = CASE WHEN b.node_id IS NULL THEN p.round_trip_ms ELSE b.round_trip_ms END,
        utilisation_pct = coalesce(b.utilisation_pct, p.utilisation_pct),
        device_used_mib = coalesce(b.device_used_mib, p.device_used_mib),
        temperature_c = coalesce(b.temperature_c, p.temperature_c), power_w = coalesce(b.power_w, p.power_w)
    FROM ours AS o LEFT JOIN beat AS b ON b.node_id = o.node_id, listening AS l
    WHERE p.node_id = o.node_id
), kept AS (
    INSERT INTO telemetry (id, node_id, at, cpu_pct, memory_used_mib, disk_free_mib, round_trip_ms, utilisation_pct,
                           device_used_mib, temperature_c, power_w)
    SELECT b.* FROM beat AS b JOIN ours AS o ON o.node_id = b.node_id
    WHERE date_bin('10 s', b.at, 'epoch') IS DISTINCT FROM date_bin('10 s', o.beat_at, 'epoch')
)
SELECT o.account_id, o.node_id, o.offline_since IS NOT NULL AS was_offline,
       EXISTS (SELECT FROM node_alert AS a WHERE a.node_id = o.node_id) AS alerted
FROM ours AS o
