-- The events of a node that a reader may see, newest first, optionally before a cursor. As in events/read.sql, nothing
-- is returned that an open transaction could still add to.
SELECT e.generation, e.transaction::text::bigint AS transaction, e.number,
       e.id, e.at, e.kind, e.subject, e.body, e.public, e.accounts
FROM event AS e
WHERE e.subject = :subject AND e.subject LIKE 'node:%'
  AND (:generation::bigint IS NULL
       OR (e.generation, e.transaction, e.number) < (:generation, (:transaction::bigint)::text::xid8, :number::bigint))
  AND (e.generation < (SELECT generation FROM pool) OR e.transaction < pg_snapshot_xmin(pg_current_snapshot()))
  AND (:everything OR e.public OR e.accounts @> ARRAY[:account_id::uuid])
ORDER BY e.generation DESC, e.transaction DESC, e.number DESC
LIMIT :limit
