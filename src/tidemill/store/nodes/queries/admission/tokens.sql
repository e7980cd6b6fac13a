-- The tokens of newcomers, locked, ordered by id: whoever else admits machines with them waits, and counts on from
-- there.
SELECT id, account_id, name, sha256, house, labels, uses_max, uses, made_at, expires_at, revoked_at, letter_at
FROM join_token
WHERE sha256 = ANY (:hashes::bytea[])
ORDER BY id
FOR NO KEY UPDATE
