-- Attempts that have not delivered, each with what it demands and its account; the job of an audit is the audit. Each is
-- looked up by itself.
SELECT l.attempt_id, l.node_id, t.demand_id, l.account_id,
       CASE WHEN l.account_id = :the_pool THEN (SELECT a.account_id FROM audit AS a WHERE a.id = l.job_id) END AS audited_id
FROM unnest(:attempt_ids::text::uuid[]) AS a (id)
CROSS JOIN LATERAL (
    SELECT attempt_id, node_id, task_id, job_id, account_id FROM lease WHERE attempt_id = a.id AND state <> 'submitted' LIMIT 1
) AS l
CROSS JOIN LATERAL (SELECT demand_id FROM task WHERE id = l.task_id LIMIT 1) AS t
