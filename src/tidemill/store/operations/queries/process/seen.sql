-- A process says it is alive. One that was given up for lost comes back as running; answers what it was before.
UPDATE process AS p SET seen_at = :now, state = 'running'
FROM (SELECT id, state FROM process WHERE id = :id FOR UPDATE) AS before
WHERE p.id = before.id AND before.state <> 'stopped'
RETURNING before.state AS was
