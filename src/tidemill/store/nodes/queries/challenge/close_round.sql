-- Close a round when all its challenges are concluded. The caller has locked it.
UPDATE challenge_round AS r SET closed_at = :now
WHERE r.id = :id AND r.closed_at IS NULL
  AND NOT EXISTS (SELECT FROM challenge AS c WHERE c.round_id = r.id AND c.concluded_at IS NULL)
