-- Mark jobs as started whose first task has gone to a node. If two try, one changes the row.
UPDATE job SET state = 'running' WHERE id = ANY (:ids::uuid[]) AND state = 'queued'
