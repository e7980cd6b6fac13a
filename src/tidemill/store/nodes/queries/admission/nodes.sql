-- Nodes by their keys, read after the lock. A process holds links while it runs and shows that it lives by a lock of its
-- session, which ends with the process however it ends (see operations/process/show_life). When the server has just
-- started, no process had the time to show itself: its links are doubted, and the caller asks again in a moment.
SELECT n.id, n.account_id, n.key, n.life, n.refused_agent, n.cloned_at, p.instance,
       r.id IS NOT NULL AND (s.lives OR s.is_young) AS has_link, NOT s.lives AND s.is_young AS link_doubted,
       p.heard_at, p.told_until, n.rules::text AS rules, n.wishes
FROM node AS n
JOIN presence AS p ON p.node_id = n.id
LEFT JOIN process AS r ON r.id = p.process_id AND r.state = 'running'
CROSS JOIN LATERAL (
    SELECT EXISTS (
               SELECT FROM pg_locks AS l
               WHERE l.locktype = 'advisory' AND l.granted AND l.classid = 7522 AND l.objsubid = 2
                 AND l.objid = ('x' || right(r.id::text, 8))::bit(32)::int::oid
                 AND l.database = (SELECT d.oid FROM pg_database AS d WHERE d.datname = current_database())
           ) AS lives,
           :now < pg_postmaster_start_time() + interval '3 s' AS is_young
) AS s
WHERE n.key = ANY (:keys::bytea[])
