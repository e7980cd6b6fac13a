-- The other nodes of an owner whose nodes are being asked: what they showed before counts no more, and they are due. The
-- owner's round was begun in this transaction, so nobody else asks them or concludes anything about them meanwhile.
UPDATE node_challenge AS c SET passed_at = NULL, refused = :refused, due_at = :now
FROM node AS n
WHERE n.id = c.node_id AND n.account_id = :account_id AND n.id <> ALL (:node_ids::uuid[]) AND c.passed_at IS NOT NULL
