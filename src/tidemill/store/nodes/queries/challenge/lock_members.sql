-- Lock the nodes of a round, ordered by id, before the round itself.
SELECT n.id FROM node AS n JOIN challenge AS c ON c.node_id = n.id WHERE c.round_id = :round_id
ORDER BY n.id FOR NO KEY UPDATE OF n
