-- The other nodes of an owner whose nodes are being asked: their earlier proofs no longer count, and they are due. This
-- transaction has begun the owner's round, so nobody else asks them or concludes anything about them meanwhile.
UPDATE node_challenge AS c SET passed_at = NULL, refused = :refused, due_at = :now
FROM node AS n
WHERE n.id = c.node_id AND n.account_id = :account_id AND n.id <> ALL (:node_ids::uuid[]) AND c.passed_at IS NOT NULL
