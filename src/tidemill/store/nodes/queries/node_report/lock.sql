-- Lock the presence of nodes, ordered by id, as everywhere: whoever admits, hears or removes them waits until their
-- reports are applied, and the other way round.
SELECT node_id, generation, received, told_until, past_until
FROM presence
WHERE node_id = ANY(:node_ids::uuid[])
ORDER BY node_id
FOR NO KEY UPDATE
