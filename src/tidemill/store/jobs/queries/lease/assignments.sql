-- The assignments of attempts that nodes may still work on, in the order of placing. Each is looked up by itself.
SELECT l.number, l.attempt_id, l.task_id, l.node_id, l.tries AS lease, l.deadline_at, t.body
FROM unnest(:attempt_ids::text::uuid[]) AS a (id)
CROSS JOIN LATERAL (
    SELECT number, attempt_id, task_id, node_id, tries, deadline_at FROM lease
    WHERE attempt_id = a.id AND state IN ('offered', 'accepted', 'running') LIMIT 1
) AS l
CROSS JOIN LATERAL (SELECT body FROM task WHERE id = l.task_id LIMIT 1) AS t
ORDER BY l.number
