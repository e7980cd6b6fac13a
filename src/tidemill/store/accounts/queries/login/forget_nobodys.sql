-- Delete old login attempts at addresses that are nobody's. Two processes may do this at once: one finds the other's rows gone.
DELETE FROM login_attempt
WHERE id IN (SELECT id FROM login_attempt WHERE account_id IS NULL AND at < :before ORDER BY at LIMIT :limit)
RETURNING id
