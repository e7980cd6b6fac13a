-- Tasks that wait for a node, each with what is to be done. What has left the queue meanwhile is not among them.
SELECT q.rank, q.task_id, q.job_id, q.account_id, q.failures, q.tries, q.since, t.body, t.cost_max_uc
FROM unnest(:ranks::text::smallint[], :task_ids::text::uuid[]) AS w (rank, task_id)
JOIN task_queue AS q ON q.rank = w.rank AND q.task_id = w.task_id
JOIN task AS t ON t.id = q.task_id
