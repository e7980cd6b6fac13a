-- Holds with something left, soonest expiry first.
SELECT id, account_id, amount_uc, currency, captured_uc, expires_at, cause, at
FROM hold
WHERE captured_uc + released_uc < amount_uc AND (:account_id::uuid IS NULL OR account_id = :account_id)
ORDER BY expires_at, id
LIMIT :limit
