-- What the queue waits for, all customers together: to how many jobs' tasks there is each objection, and at how many nodes
-- at the most; and of how many jobs something is known, those that wait for nodes that are busy, and those without any.
WITH known AS (
    SELECT w.job_id, w.looked, w.soon, w.counts
    FROM waiting_for AS w
    JOIN task_queue AS q ON q.rank IN (0, 1, 2) AND q.task_id = w.task_id
)
SELECT c.code, count(DISTINCT k.job_id) AS jobs, max(c.nodes::integer) AS nodes
FROM known AS k CROSS JOIN LATERAL jsonb_each_text(k.counts) AS c (code, nodes)
GROUP BY c.code
UNION ALL
SELECT 'soon', count(DISTINCT job_id), coalesce(max(soon), 0) FROM known WHERE soon > 0
UNION ALL
SELECT 'no_nodes', count(DISTINCT job_id), 0 FROM known WHERE looked = 0
ORDER BY jobs DESC, code
