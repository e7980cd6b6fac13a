-- Login attempts at one account after a cursor, newest first.
SELECT id, at, address, user_agent, result FROM login_attempt
WHERE account_id = :account_id AND (:after::uuid IS NULL OR id < :after)
ORDER BY id DESC
LIMIT :limit
