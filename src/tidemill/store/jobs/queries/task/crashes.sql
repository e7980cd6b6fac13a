-- Failures of tasks as their nodes reported them: attempts that were judged without a verdict.
SELECT task_id, owner_id, reason FROM attempt
WHERE task_id = ANY (:task_ids::uuid[]) AND state = 'judged' AND verdict IS NULL
