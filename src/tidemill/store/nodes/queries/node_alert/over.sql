-- Device alerts that are over: the device no longer fails, or no other node claims it any more. An alert lasts a
-- minimum time. If a node claims the device again meanwhile, its claim raises a new alert.
SELECT a.node_id, a.kind, a.device, a.sentence, a.since
FROM node_alert AS a LEFT JOIN device AS d ON d.node_id = a.node_id AND d.index = a.device
WHERE a.since <= :raised_until
  AND (a.kind = 'failing_device' AND d.failing IS NULL
       OR a.kind = 'device_claimed_twice' AND NOT EXISTS (
           SELECT FROM device AS o JOIN node AS n ON n.id = o.node_id AND n.life <> 'deregistered'
           WHERE o.uuid = d.uuid AND o.uuid <> '' AND o.kind <> 'cpu' AND d.kind <> 'cpu' AND o.node_id <> a.node_id
       ))
ORDER BY a.node_id, a.kind, a.device
LIMIT :limit
