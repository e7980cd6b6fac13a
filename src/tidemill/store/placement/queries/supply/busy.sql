-- The nodes that have work.
SELECT DISTINCT node_id FROM lease
