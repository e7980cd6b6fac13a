-- Confirm a quoted job. The caller has locked it.
UPDATE job SET state = 'queued', hold_id = :hold_id, tasks = :tasks, confirmed_at = :now, deadline_at = :deadline_at
WHERE id = :id
