-- Lock an account and all operators, ordered by id: two operators who remove each other at once wait without a
-- deadlock.
SELECT id, 'operator' = ANY (roles) AND blocked_reason IS NULL AS operates
FROM account
WHERE deleted_at IS NULL AND (id = :id OR 'operator' = ANY (roles) AND blocked_reason IS NULL)
ORDER BY id
FOR NO KEY UPDATE
