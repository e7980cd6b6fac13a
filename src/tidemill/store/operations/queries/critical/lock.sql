-- One process at a time decides what is in force; held until its transaction ends, so that each sees what the last did.
SELECT pg_advisory_xact_lock(7521, 3)
