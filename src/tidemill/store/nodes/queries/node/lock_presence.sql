-- Lock the presence of a node, before the node itself: a link that begins at this moment is decided before or after us.
SELECT node_id FROM presence WHERE node_id = :id FOR NO KEY UPDATE
