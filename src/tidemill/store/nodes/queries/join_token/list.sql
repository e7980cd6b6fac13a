-- The join tokens of an account that still admit machines, newest first.
SELECT id, account_id, name, sha256, house, labels, uses_max, uses, made_at, expires_at, revoked_at, letter_at
FROM join_token
WHERE account_id = :account_id AND revoked_at IS NULL AND expires_at > :now AND uses < uses_max
ORDER BY id DESC
