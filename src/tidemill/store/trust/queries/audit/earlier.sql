-- Earlier results of a task that were audited, and differed.
SELECT owner_id, claimed, found FROM audit
WHERE of_task_id = :task_id AND id <> :attempt_id AND verdict = 'fail'
ORDER BY id
