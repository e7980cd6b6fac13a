-- Attempts that were given up while their tasks are still open, each with its task, node and terms.
SELECT a.id AS attempt_id, a.task_id, a.job_id, j.account_id, a.node_id, a.owner_id, a.lease, a.state, a.hourly_uc,
       a.quoted_ms, a.offered_at
FROM unnest(:attempt_ids::text::uuid[]) AS w (id)
JOIN attempt AS a ON a.id = w.id JOIN task AS t ON t.id = a.task_id JOIN job AS j ON j.id = a.job_id
WHERE a.state IN ('lost', 'expired') AND t.ended IS NULL
