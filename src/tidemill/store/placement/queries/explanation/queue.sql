-- What the queue waits for, for all customers together: for each objection, how many jobs have tasks it applies to, and
-- at how many nodes at most; also how many jobs are explained, how many wait for busy nodes, and how many have no nodes
-- at all.
WITH known AS (
    SELECT w.job_id, w.looked, w.soon, w.counts
    FROM waiting_for AS w
    JOIN task_queue AS q ON q.rank IN (0, 1, 2) AND q.task_id = w.task_id
)
SELECT c.code, count(DISTINCT k.job_id) AS jobs, max(c.nodes::integer) AS nodes
FROM known AS k CROSS JOIN LATERAL jsonb_each_text(k.counts) AS c (code, nodes)
GROUP BY c.code
UNION ALL
SELECT 'soon', count(DISTINCT job_id), max(soon) FROM known WHERE soon > 0 HAVING count(*) > 0
UNION ALL
SELECT 'no_nodes', count(DISTINCT job_id), 0 FROM known WHERE looked = 0 HAVING count(*) > 0
ORDER BY jobs DESC, code
