-- Expired holds with something left. Two processes that look at once find the same ones; only one release counts.
SELECT id FROM hold WHERE expires_at <= :now AND captured_uc + released_uc < amount_uc ORDER BY expires_at LIMIT :limit
