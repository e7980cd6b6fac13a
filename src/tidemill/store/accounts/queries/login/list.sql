-- The tries at one account's door, newest first, behind a cursor.
SELECT id, at, address, user_agent, result FROM login_attempt
WHERE account_id = :account_id AND (:after::uuid IS NULL OR id < :after)
ORDER BY id DESC
LIMIT :limit
