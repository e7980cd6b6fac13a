-- Whether the pool is set up, and whether it is a demonstration.
SELECT id, set_up_at, demonstration FROM pool
