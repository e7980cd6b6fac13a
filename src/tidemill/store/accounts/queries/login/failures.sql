-- Recent failed logins at one address, from this network and from all. A success or a reset since then restarts the
-- count. Also whether the account was ever used from this network, or its password reset there by mail. An index on
-- these answers that, so many failures by strangers make it no slower; a slower answer would reveal that the account
-- exists.
SELECT count(*) FILTER (WHERE f.network = :network AND f.at > coalesce(greatest(s.here_at, s.reset_at), '-infinity'))
           AS here,
       count(*) FILTER (WHERE f.at > coalesce(s.reset_at, '-infinity')) AS everywhere,
       count(*) FILTER (WHERE f.result = 'code_wrong' AND f.at > coalesce(s.reset_at, '-infinity')) AS codes,
       coalesce(max(f.at) FILTER (WHERE f.network = :network), 'epoch') AS last_here_at,
       coalesce(max(f.at), 'epoch') AS last_at,
       s.here_at IS NOT NULL AS known_network
FROM (SELECT (SELECT max(l.at) FROM login_attempt l
              WHERE l.account_id = :account_id AND l.network = :network AND l.result IN ('ok', 'reset')) AS here_at,
             (SELECT a.password_at FROM account a WHERE a.id = :account_id) AS reset_at) s
LEFT JOIN login_attempt f
    ON f.address_sha256 = :address_sha256 AND f.at > :since AND f.result IN ('failed', 'code_wrong')
GROUP BY s.here_at, s.reset_at
