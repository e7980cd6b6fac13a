-- The explanations of a job's attempts that were placed at these moments, with the numbers of their tasks.
SELECT e.id, e.job_id, e.at, e.kind, e.policy, e.lower_wins, e.nodes, e.task_ids, e.node_ids, e.weighed,
       ARRAY(SELECT t.number FROM task AS t WHERE t.id = ANY (e.task_ids)) AS numbers
FROM explanation AS e
WHERE e.job_id = :job_id AND e.at = ANY (:ats::timestamptz[])
ORDER BY e.id
