-- Clear alerts. If two processes clear one at once, only the first gets it back, so each is told once.
DELETE FROM node_alert AS a
USING unnest(:node_ids::uuid[], :kinds::text[], :devices::smallint[]) AS c (node_id, kind, device), node AS n
WHERE a.node_id = c.node_id AND a.kind = c.kind AND a.device = c.device AND n.id = a.node_id
RETURNING n.account_id, a.node_id, a.kind AS alert, a.device
