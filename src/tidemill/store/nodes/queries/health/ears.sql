-- How long we have listened, how many nodes we should hear, and when we last heard one.
SELECT l.listened_us, l.at, l.since, l.deaf_since, e.nodes, e.owners, e.heard_at
FROM listening AS l, (
    SELECT count(*) AS nodes, count(DISTINCT n.account_id) AS owners, max(p.heard_at) AS heard_at
    FROM presence AS p JOIN node AS n ON n.id = p.node_id AND n.life <> 'deregistered'
    WHERE p.heard_at IS NOT NULL AND p.offline_since IS NULL
) AS e
