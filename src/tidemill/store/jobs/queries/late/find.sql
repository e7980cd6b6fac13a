-- Attempts that were given up while their tasks are still open, as the leases that they held. Rank, failures and tries
-- have changed since: whoever has the task now tells them.
SELECT a.id AS attempt_id, a.task_id, a.job_id, j.account_id, a.node_id, a.owner_id, 0::smallint AS rank,
       0::smallint AS failures, a.lease AS tries, a.state, a.batch_id, a.place, a.hourly_uc, a.quoted_ms, a.work_ms,
       a.offered_at, NULL::timestamptz AS begun_at, NULL::timestamptz AS heard_at, n.house, t.expected, t.cost_max_uc,
       j.hold_id, j.closing IS NULL AS wanted, j.private, j.kind
FROM unnest(:attempt_ids::text::uuid[]) AS w (id)
JOIN attempt AS a ON a.id = w.id JOIN task AS t ON t.id = a.task_id JOIN job AS j ON j.id = a.job_id
JOIN node AS n ON n.id = a.node_id
WHERE a.state IN ('lost', 'expired') AND t.ended IS NULL
