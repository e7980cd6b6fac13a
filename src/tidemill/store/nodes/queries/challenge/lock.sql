-- The challenges that these answers belong to, locked, ordered by node, with the times of their rounds.
SELECT c.id, c.node_id, c.state, c.asked, c.draw, r.commit_by, r.open_by
FROM challenge AS c JOIN challenge_round AS r ON r.id = c.round_id
WHERE c.id = ANY (:ids::uuid[]) AND c.concluded_at IS NULL
ORDER BY c.node_id, c.id FOR UPDATE OF c
