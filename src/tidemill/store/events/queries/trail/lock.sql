-- Whether we are the one who continues the audit trail, until our transaction ends. Others need not wait: the holder
-- takes their events, too. A holder that is killed lets go with its connection.
SELECT pg_try_advisory_xact_lock(7521, 2) AS ours
