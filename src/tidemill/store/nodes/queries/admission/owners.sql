-- The owners of these nodes and tokens, locked until the transaction ends: an account is not blocked, and loses no
-- role, between the decision to admit its machine and the link. Lock them ordered by id, before anything else. For
-- newcomers, count how many machines an owner has joined lately; two processes may each count the same.
SELECT id, roles, blocked_reason IS NOT NULL AS blocked,
       (SELECT count(*) FROM node AS n
        WHERE cardinality(:hashes::bytea[]) > 0 AND n.account_id = account.id AND n.id >= :since_id) AS joined
FROM account
WHERE id IN (
    SELECT account_id FROM node WHERE key = ANY (:keys::bytea[])
    UNION SELECT account_id FROM join_token WHERE sha256 = ANY (:hashes::bytea[])
)
ORDER BY id
FOR SHARE
