-- One process at a time decides what is in force. The lock lasts until its transaction ends, so each sees what the last
-- one did.
SELECT pg_advisory_xact_lock(7521, 3)
