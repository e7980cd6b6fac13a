-- What a node's own request needs: its key, and whether the node and its owner may still take part.
SELECT n.key, n.account_id, n.removed_at IS NOT NULL AS removed, a.blocked_reason IS NOT NULL AS blocked
FROM node AS n JOIN account AS a ON a.id = n.account_id
WHERE n.id = :id AND a.deleted_at IS NULL
