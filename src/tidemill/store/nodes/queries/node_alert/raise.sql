-- Raise alerts that are not open yet, for nodes that are not removed. If two processes raise one at once, the second
-- changes nothing, so each is told once.
INSERT INTO node_alert (node_id, kind, device, sentence, since)
SELECT n.id, a.kind, a.device, a.sentence, :now
FROM unnest(:node_ids::uuid[], :kinds::text[], :devices::smallint[], :sentences::text[])
     AS a (node_id, kind, device, sentence)
JOIN node AS n ON n.id = a.node_id AND n.life <> 'deregistered'
ORDER BY n.id, a.kind, a.device
ON CONFLICT DO NOTHING
RETURNING (SELECT account_id FROM node WHERE id = node_id) AS account_id, node_id, kind AS alert, device, sentence
