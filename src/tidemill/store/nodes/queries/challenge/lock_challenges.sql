-- The challenges of a round, locked, ordered by node: we wait for an answer that is being written, and a later answer
-- sees the draw.
SELECT id, state FROM challenge WHERE round_id = :round_id ORDER BY node_id FOR UPDATE
