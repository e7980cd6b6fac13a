-- Add a process to the registry.
INSERT INTO process (id, host, pid, version, settings, started_at, seen_at, state)
VALUES (:id, :host, :pid, :version, :settings, :now, :now, 'running')
