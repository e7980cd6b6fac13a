-- Ask the nodes of a round that this transaction has begun, note when, and have them told.
WITH asked AS (
    INSERT INTO challenge (id, round_id, node_id, state, asked)
    SELECT a.id, :round_id, a.node_id, 'asked', a.asked
    FROM unnest(:ids::uuid[], :node_ids::uuid[], :asked::text[]) AS a (id, node_id, asked)
), noted AS (
    INSERT INTO node_challenge AS c (node_id, due_at, begun_at)
    SELECT node_id, :now, :now FROM unnest(:node_ids::uuid[]) AS a (node_id)
    ON CONFLICT (node_id) DO UPDATE SET begun_at = excluded.begun_at
)
UPDATE node SET wishes = wishes + 1 WHERE id = ANY (:node_ids::uuid[])
