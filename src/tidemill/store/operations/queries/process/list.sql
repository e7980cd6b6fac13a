-- The processes that run or have not been deleted yet, newest first.
SELECT id, host, pid, version, settings, started_at, seen_at, state
FROM process
WHERE (:after::uuid IS NULL OR id < :after)
ORDER BY id DESC
LIMIT :limit
