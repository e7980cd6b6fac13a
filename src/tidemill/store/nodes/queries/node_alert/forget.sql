-- A removed node needs nobody any more: its alerts go without a word.
DELETE FROM node_alert WHERE node_id IN (
    SELECT a.node_id FROM node_alert AS a JOIN node AS n ON n.id = a.node_id
    WHERE n.life = 'deregistered' LIMIT :limit
)
