-- Jobs whose first task has gone to a node. Of two who say so one changes the row.
UPDATE job SET state = 'running' WHERE id = ANY (:ids::uuid[]) AND state = 'queued'
