-- Try to become the process that continues the audit trail until the transaction ends. Others need not wait: the holder
-- appends their events, too. If the holder is killed, its connection closes and frees the lock.
SELECT pg_try_advisory_xact_lock(7521, 2) AS ours
