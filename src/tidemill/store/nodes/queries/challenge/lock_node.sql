-- Lock the node of a challenge, and return its life state.
SELECT n.life FROM node AS n WHERE n.id = :node_id FOR NO KEY UPDATE
