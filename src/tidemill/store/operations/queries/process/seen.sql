-- Note that a process is alive. A lost process becomes running again. Returns its state before.
UPDATE process AS p SET seen_at = :now, state = 'running'
FROM (SELECT id, state FROM process WHERE id = :id FOR UPDATE) AS before
WHERE p.id = before.id AND before.state <> 'stopped'
RETURNING before.state AS was
