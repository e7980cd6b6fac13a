-- Set a switch, if it has not changed since the decision; else return no row.
INSERT INTO switch AS s (name, stopped, reason, changed_by, changed_at)
VALUES (:name, :stopped, :reason, :changed_by, :changed_at)
ON CONFLICT (name) DO UPDATE
SET stopped = :stopped, reason = :reason, changed_by = :changed_by, changed_at = :changed_at
WHERE s.stopped <> :stopped
RETURNING name
