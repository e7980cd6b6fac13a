-- Revoke join tokens of an account, one or all. A machine that joins at this moment holds the row, and joins first.
UPDATE join_token SET revoked_at = :now
WHERE account_id = :account_id AND (:id::uuid IS NULL OR id = :id) AND revoked_at IS NULL
  AND (:id::uuid IS NOT NULL OR expires_at > :now AND uses < uses_max)
RETURNING id, name
