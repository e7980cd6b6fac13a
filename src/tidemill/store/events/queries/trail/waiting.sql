-- Audited events after a cursor, oldest first. Like events/read.sql it stops before a transaction that is still open,
-- so nothing is ever added before the last act.
SELECT e.generation, e.transaction::text::bigint AS transaction, e.number,
       e.id, e.at, e.kind, e.subject, e.body, e.public, e.accounts
FROM event AS e
WHERE e.audited
  AND (e.generation, e.transaction, e.number) > (:generation, (:transaction::bigint)::text::xid8, :number)
  AND e.generation <= (SELECT generation FROM pool)
  AND (e.generation < (SELECT generation FROM pool) OR e.transaction < pg_snapshot_xmin(pg_current_snapshot()))
ORDER BY e.generation, e.transaction, e.number
LIMIT :limit
