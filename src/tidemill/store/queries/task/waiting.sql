-- Tasks that wait for a node, the most urgent first, each with what is to be done.
SELECT q.rank, q.task_id, q.job_id, q.account_id, q.failures, q.tries, q.since, t.body, t.cost_max_uc,
       t.expected IS NOT NULL AS has_expected
FROM (SELECT * FROM task_queue WHERE (rank, task_id) > (:rank, :after) ORDER BY rank, task_id LIMIT :limit) AS q
JOIN task AS t ON t.id = q.task_id
ORDER BY q.rank, q.task_id
