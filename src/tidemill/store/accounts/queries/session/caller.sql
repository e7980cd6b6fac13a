-- A session with its account: every request needs both.
SELECT s.id, s.account_id, s.began_at, s.seen_at, s.fresh_at, s.expires_at, s.address, s.user_agent, s.remember,
       s.second_factor, s.ended_at, s.ended_why, a.roles,
       a.blocked_reason IS NOT NULL AS blocked
FROM session s JOIN account a ON a.id = s.account_id
WHERE s.id = :id AND a.deleted_at IS NULL
