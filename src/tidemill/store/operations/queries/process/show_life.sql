-- Show that a process lives, for as long as this session does: a lock that nobody waits for. It ends with the process,
-- also by kill -9, and with the machine. Two processes share a number once in four billion times, so the lock is shared.
SELECT pg_try_advisory_lock_shared(7522, ('x' || right(:id::uuid::text, 8))::bit(32)::int) AS held
