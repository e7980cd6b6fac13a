-- The alerts of nodes, oldest first.
SELECT node_id, kind, device, sentence, since
FROM node_alert
WHERE node_id = ANY(:node_ids::uuid[])
ORDER BY node_id, since, kind, device
