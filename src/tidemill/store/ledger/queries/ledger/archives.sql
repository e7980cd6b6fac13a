-- The archives, oldest first.
SELECT month, archived_at, number, last_at, file, sha256, entries FROM ledger_archive ORDER BY month
