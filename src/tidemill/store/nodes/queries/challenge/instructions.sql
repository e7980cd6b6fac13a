-- The instructions that nodes have to receive about their challenges. The first time is noted, because the clock starts
-- then. Rows are locked ordered by node, as everywhere.
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
