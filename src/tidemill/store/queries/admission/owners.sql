-- The owners of these nodes and tokens, kept as they are until the caller's end: an account is not blocked, and loses no
-- role, between the decision to let its machine in and the link. Locked in one order, and before anything else.
SELECT id, roles, blocked_reason IS NOT NULL AS blocked
FROM account
WHERE id IN (
    SELECT account_id FROM node WHERE key = ANY (:keys::bytea[])
    UNION SELECT account_id FROM join_token WHERE sha256 = ANY (:hashes::bytea[])
)
ORDER BY id
FOR SHARE
