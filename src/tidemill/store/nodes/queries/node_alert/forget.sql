-- Delete the alerts of a removed node, without telling anybody.
DELETE FROM node_alert WHERE node_id IN (
    SELECT a.node_id FROM node_alert AS a JOIN node AS n ON n.id = a.node_id
    WHERE n.life = 'deregistered' LIMIT :limit
)
