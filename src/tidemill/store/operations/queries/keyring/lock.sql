-- One rotation at a time, until its session ends. The audit trail has another lock, and continues.
SELECT pg_try_advisory_lock(7521, 4) AS held
