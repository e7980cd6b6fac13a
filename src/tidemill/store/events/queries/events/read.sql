-- Read events after a cursor, oldest first. A transaction that is still open may append a smaller number, so nothing at
-- or above the oldest open transaction is returned: nothing is ever added before an event that was read. Earlier
-- generations came with a backup and are complete.
SELECT e.generation, e.transaction::text::bigint AS transaction, e.number,
       e.id, e.at, e.kind, e.subject, e.body, e.public, e.accounts
FROM event AS e
WHERE (e.generation, e.transaction, e.number) > (:generation, (:transaction::bigint)::text::xid8, :number)
  AND e.generation <= (SELECT generation FROM pool)
  AND (e.generation < (SELECT generation FROM pool) OR e.transaction < pg_snapshot_xmin(pg_current_snapshot()))
ORDER BY e.generation, e.transaction, e.number
LIMIT :limit
