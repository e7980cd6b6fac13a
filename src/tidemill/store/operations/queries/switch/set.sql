-- Set a switch, if it still stands as it did when the decision was made; else no row comes back.
INSERT INTO switch AS s (name, stopped, reason, changed_by, changed_at)
VALUES (:name, :stopped, :reason, :changed_by, :changed_at)
ON CONFLICT (name) DO UPDATE
SET stopped = :stopped, reason = :reason, changed_by = :changed_by, changed_at = :changed_at
WHERE s.stopped <> :stopped
RETURNING name
