-- A retired data key is no longer needed. Foreign keys refuse it while any value is sealed with it, and wait for the
-- transactions that are just writing one.
DELETE FROM data_key WHERE id = :id AND retired_at IS NOT NULL RETURNING id
