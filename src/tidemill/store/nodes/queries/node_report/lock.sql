-- Lock the presence of nodes, in the order of their ids as everybody does who locks many: whoever lets them in, hears
-- them or removes them waits until their reports are done, and the other way round.
SELECT node_id, generation, received, told_until, past_until
FROM presence
WHERE node_id = ANY(:node_ids::uuid[])
ORDER BY node_id
FOR NO KEY UPDATE
