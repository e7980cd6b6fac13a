-- The nodes that have something to do.
SELECT DISTINCT node_id FROM lease
