-- Rounds that are ready for the draw: every node has committed or said that it cannot, or the time is up.
SELECT r.id FROM challenge_round AS r
WHERE r.closed_at IS NULL AND r.drawn_at IS NULL
  AND (r.commit_by <= :now OR NOT EXISTS (SELECT FROM challenge AS c WHERE c.round_id = r.id AND c.state = 'asked'))
ORDER BY r.id LIMIT :limit
