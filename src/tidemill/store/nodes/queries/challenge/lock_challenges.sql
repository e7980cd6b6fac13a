-- The challenges of a round, locked in the order of their nodes: an answer that is just being kept is waited for, and one
-- that comes later finds that places were drawn.
SELECT id, state FROM challenge WHERE round_id = :round_id ORDER BY node_id FOR UPDATE
