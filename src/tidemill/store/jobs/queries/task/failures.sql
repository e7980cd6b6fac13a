-- Failures of tasks as their nodes told of them, and results that are not what the customer expects, with the terms that
-- their attempts were placed on; oldest first.
SELECT a.task_id, a.id AS attempt_id, a.owner_id, a.reason, a.verdict IS NULL AS is_crash, n.house, a.hourly_uc, a.quoted_ms,
       a.work_ms, a.offered_at, a.ended_at
FROM attempt AS a JOIN node AS n ON n.id = a.node_id
WHERE a.task_id = ANY (:task_ids::uuid[]) AND a.state = 'judged'
  AND (a.verdict IS NULL OR (a.verdict = 'review' AND starts_with(a.reason, :unexpected)))
ORDER BY a.id
