-- What nodes have to be told about their challenges. The first time is noted, for that is when the clock starts; rows are
-- locked in the order of their nodes, as everywhere.
WITH sent AS (
    UPDATE challenge SET sent_at = :now
    WHERE id IN (
        SELECT id FROM challenge
        WHERE node_id = ANY (:node_ids::uuid[]) AND state = 'asked' AND sent_at IS NULL AND concluded_at IS NULL
        ORDER BY node_id FOR UPDATE
    )
)
SELECT id, node_id, state, asked, draw FROM challenge
WHERE node_id = ANY (:node_ids::uuid[]) AND state IN ('asked', 'drawn') AND concluded_at IS NULL
