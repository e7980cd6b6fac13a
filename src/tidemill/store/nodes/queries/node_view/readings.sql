-- What is known of nodes besides their own rows: their last beat, whether they are hot, whether they have proved their
-- claims, all of them and since they were last away, and why not, and whether their owner is blocked.
SELECT p.cpu_pct, p.memory_used_mib, p.disk_free_mib, p.round_trip_ms, p.utilisation_pct, p.device_used_mib,
       p.temperature_c, p.power_w, p.node_id, p.beat_at,
       EXISTS (SELECT FROM node_alert AS a WHERE a.node_id = p.node_id AND a.kind = 'hot') AS hot,
       c.passed_at IS NOT NULL AND (p.back_online_at IS NULL OR c.passed_at >= p.back_online_at)
           AND NOT EXISTS (
               SELECT FROM device AS d WHERE d.node_id = p.node_id AND d.failing IS NULL AND d.measured_at IS NULL
           ) AS challenge_passed,
       coalesce(c.refused, '') AS challenge_refused, o.blocked_reason IS NOT NULL AS owner_blocked
FROM presence AS p JOIN node AS n ON n.id = p.node_id JOIN account AS o ON o.id = n.account_id
LEFT JOIN node_challenge AS c ON c.node_id = p.node_id
WHERE p.node_id = ANY(:node_ids::uuid[])
