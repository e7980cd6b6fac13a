-- A node as a request of its own needs it: its key, and whether it and its owner are still welcome.
SELECT n.key, n.account_id, n.life, a.blocked_reason
FROM node AS n JOIN account AS a ON a.id = n.account_id
WHERE n.id = :id AND a.deleted_at IS NULL
