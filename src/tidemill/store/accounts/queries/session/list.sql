-- The open sessions of an account, neither ended nor expired, newest first.
SELECT id, account_id, began_at, seen_at, fresh_at, expires_at, address, user_agent, remember, second_factor, ended_at,
       ended_why
FROM session
WHERE account_id = :account_id AND ended_at IS NULL AND expires_at > :now AND (remember OR seen_at > :idle_since)
ORDER BY id DESC
LIMIT 200
