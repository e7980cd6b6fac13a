-- Lock the node of a challenge, and say where it is in its life.
SELECT n.life FROM node AS n WHERE n.id = :node_id FOR NO KEY UPDATE
