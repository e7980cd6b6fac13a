-- The attempts of a job after a given one, running or over. Both reads share one snapshot, so a lease that ends
-- meanwhile is neither shown twice nor left out.
SELECT a.attempt_id, t.number AS task, a.node_id, coalesce(n.name, '') AS node_name,
       coalesce((SELECT coalesce(d.model, d.name) FROM device AS d WHERE d.node_id = a.node_id ORDER BY d.index LIMIT 1), '')
           AS device,
       a.state, a.verdict, a.reason AS end_reason, a.audit, a.hourly_uc, a.paid_uc, a.offered_at, a.ended_at
FROM (
    SELECT l.attempt_id, l.task_id, l.node_id, l.state, NULL::text AS verdict, '' AS reason, l.hourly_uc, 0::bigint AS paid_uc,
           l.offered_at, NULL::timestamptz AS ended_at,
           CASE WHEN u.asked_at IS NOT NULL THEN 'asked' WHEN q.task_id IS NOT NULL THEN 'waits' WHEN u.task_id IS NOT NULL THEN 'runs' END AS audit
    FROM lease AS l LEFT JOIN audit AS u ON u.id = l.attempt_id
    LEFT JOIN task_queue AS q ON q.rank = l.rank AND q.task_id = u.task_id
    WHERE l.job_id = :job_id
    UNION ALL
    SELECT e.id, e.task_id, e.node_id, e.state, e.verdict, e.reason, NULL, e.paid_uc, e.offered_at, e.ended_at, NULL
    FROM task AS mine JOIN attempt AS e ON e.task_id = mine.id WHERE mine.job_id = :job_id
) AS a
JOIN task AS t ON t.id = a.task_id
LEFT JOIN node AS n ON n.id = a.node_id
WHERE :after::uuid IS NULL OR a.attempt_id > :after
ORDER BY a.attempt_id
LIMIT :limit
