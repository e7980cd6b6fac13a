-- Forget old tries. Two processes at once find each other's rows gone, which is as well.
DELETE FROM login_attempt WHERE id IN (SELECT id FROM login_attempt WHERE at < :before ORDER BY at LIMIT :limit)
RETURNING id
