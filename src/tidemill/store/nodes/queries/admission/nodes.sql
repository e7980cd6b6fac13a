-- Nodes by their keys, read after the lock. A process that is lost or has stopped holds no link.
SELECT n.id, n.account_id, n.key, n.life, n.refused_agent, n.cloned_at, p.instance, r.id IS NOT NULL AS has_link,
       p.heard_at, p.told_until, n.rules::text AS rules, n.wishes
FROM node AS n
JOIN presence AS p ON p.node_id = n.id
LEFT JOIN process AS r ON r.id = p.process_id AND r.state = 'running'
WHERE n.key = ANY (:keys::bytea[])
