-- Delete a retired data key. Foreign keys prevent it while any value is sealed with it, and wait for transactions that
-- are writing one.
DELETE FROM data_key WHERE id = :id AND retired_at IS NOT NULL RETURNING id
