-- One rotation at a time, for as long as its session lives.
SELECT pg_try_advisory_lock(7521, 2) AS held
