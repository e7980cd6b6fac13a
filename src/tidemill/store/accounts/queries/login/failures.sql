-- What went wrong lately for one address: from this network and from all; a success or a reset since counts it anew.
-- And whether the account was ever used from this network: found by an index on what went well, so that strangers who
-- fail many times make it no slower, which would also tell that there is an account.
SELECT count(*) FILTER (WHERE f.network = :network AND f.at > coalesce(greatest(s.here_at, s.reset_at), '-infinity'))
           AS here,
       count(*) FILTER (WHERE f.at > coalesce(s.reset_at, '-infinity')) AS everywhere,
       count(*) FILTER (WHERE f.result = 'code_wrong' AND f.at > coalesce(s.reset_at, '-infinity')) AS codes,
       max(f.at) FILTER (WHERE f.network = :network) AS last_here_at,
       max(f.at) AS last_at,
       s.here_at IS NOT NULL AS known_network
FROM (SELECT (SELECT max(l.at) FROM login_attempt l
              WHERE l.account_id = :account_id AND l.network = :network AND l.result = 'ok') AS here_at,
             (SELECT a.password_at FROM account a WHERE a.id = :account_id) AS reset_at) s
LEFT JOIN login_attempt f
    ON f.address_sha256 = :address_sha256 AND f.at > :since AND f.result IN ('failed', 'code_wrong')
GROUP BY s.here_at, s.reset_at
