-- Tasks that wait for a node, each with its work and whose turn it takes; the job of an audit is the audit. Tasks that have left the queue meanwhile are left out. Each is looked
-- up by itself: the queue fills and empties, and the planner may still believe that it is empty.
SELECT q.rank, q.task_id, q.job_id, q.account_id,
       CASE WHEN q.account_id = :the_pool THEN (SELECT a.account_id FROM audit AS a WHERE a.id = q.job_id)
            ELSE q.account_id END AS customer_id,
       q.failures, q.tries, q.since, t.body, t.cost_max_uc, t.demand_id
FROM unnest(:ranks::text::smallint[], :task_ids::text::uuid[]) AS w (rank, task_id)
CROSS JOIN LATERAL (SELECT * FROM task_queue WHERE rank = w.rank AND task_id = w.task_id LIMIT 1) AS q
CROSS JOIN LATERAL (SELECT body, cost_max_uc, demand_id FROM task WHERE id = q.task_id LIMIT 1) AS t
