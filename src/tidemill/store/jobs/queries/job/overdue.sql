-- Jobs that still want tasks, but whose time or money has run out. Read only: whoever closes one locks it first.
SELECT id, now_late
FROM (
    SELECT id, deadline_at <= :now AS now_late, budget_uc IS NOT NULL AND spent_uc >= budget_uc AS is_spent
    FROM job
    WHERE id = ANY (ARRAY(SELECT DISTINCT job_id FROM task_queue) || ARRAY(SELECT DISTINCT job_id FROM lease))
      AND state IN ('queued', 'running') AND closing IS NULL
) AS j
WHERE now_late OR is_spent
ORDER BY id
LIMIT :limit
