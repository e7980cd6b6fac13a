-- The session of a refresh token, locked: if two bring the same token, the second sees it used.
SELECT s.id, s.account_id, s.began_at, s.seen_at, s.fresh_at, s.expires_at, s.address, s.user_agent, s.remember,
       s.second_factor, s.ended_at, s.ended_why, t.used
FROM refresh_token t JOIN session s ON s.id = t.session_id
WHERE t.sha256 = :sha256
FOR UPDATE
