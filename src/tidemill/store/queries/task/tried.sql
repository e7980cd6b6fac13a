-- Which nodes tasks must not go to: those that failed them or were late, for good; those that declined or were lost, for
-- a while.
SELECT a.task_id, array_agg(a.node_id) AS node_ids
FROM attempt AS a
WHERE a.task_id = ANY (:task_ids::uuid[])
  AND (a.state IN ('judged', 'expired') OR (a.state IN ('declined', 'lost') AND a.ended_at > :since))
GROUP BY a.task_id
