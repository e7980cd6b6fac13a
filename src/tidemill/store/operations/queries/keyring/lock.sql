-- One rotation at a time, for as long as its session lives. Who chains the audit trail has another lock, and goes on.
SELECT pg_try_advisory_lock(7521, 4) AS held
