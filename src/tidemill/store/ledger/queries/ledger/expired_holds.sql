-- Holds whose time is over and of which something is left. Two who look at once find the same; only one release counts.
SELECT id FROM hold WHERE expires_at <= :now AND captured_uc + released_uc < amount_uc ORDER BY expires_at LIMIT :limit
