-- Devices of some nodes that other nodes claim, too, without an alert yet. The cost depends only on how many devices
-- these nodes have, however many others claim the same.
SELECT d.node_id, d.index AS device, d.uuid
FROM device AS d
WHERE d.node_id = ANY(:node_ids::uuid[]) AND d.uuid <> '' AND d.kind <> 'cpu'
  AND EXISTS (
      SELECT FROM device AS o JOIN node AS n ON n.id = o.node_id AND n.life <> 'deregistered'
      WHERE o.uuid = d.uuid AND o.uuid <> '' AND o.kind <> 'cpu' AND o.node_id <> d.node_id
  )
  AND NOT EXISTS (
      SELECT FROM node_alert AS a
      WHERE a.node_id = d.node_id AND a.kind = 'device_claimed_twice' AND a.device = d.index
  )
ORDER BY d.node_id, d.index
