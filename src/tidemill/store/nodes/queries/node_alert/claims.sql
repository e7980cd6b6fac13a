-- Devices that two nodes of the pool claim, without an alert yet. CPUs are left out, because they have no unique name.
-- Two nodes that claim a device at the same moment do not see each other, so all devices are checked repeatedly.
WITH claimed AS (
    SELECT d.uuid
    FROM device AS d JOIN node AS n ON n.id = d.node_id AND n.life <> 'deregistered'
    WHERE d.uuid <> '' AND d.kind <> 'cpu'
    GROUP BY d.uuid
    HAVING count(DISTINCT d.node_id) > 1
)
SELECT d.node_id, d.index AS device, d.uuid
FROM claimed AS c
JOIN device AS d ON d.uuid = c.uuid AND d.kind <> 'cpu'
JOIN node AS n ON n.id = d.node_id AND n.life <> 'deregistered'
WHERE NOT EXISTS (
    SELECT FROM node_alert AS a
    WHERE a.node_id = d.node_id AND a.kind = 'device_claimed_twice' AND a.device = d.index
)
ORDER BY d.node_id, d.index
LIMIT :limit
