-- Whether the pool is set up, and whether it is a demonstration.
SELECT id, set_up_at IS NOT NULL AS set_up, demonstration FROM pool
