-- The operators, locked: two who remove each other at once must wait for one another.
SELECT id FROM account
WHERE 'operator' = ANY (roles) AND deleted_at IS NULL AND blocked_reason IS NULL
ORDER BY id
FOR NO KEY UPDATE
