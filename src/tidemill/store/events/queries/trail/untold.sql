-- The first audited event up to a cursor that has no act, and the number its act would have. Nothing is ever added
-- before the last act, so this event is not one whose act is still to come.
SELECT e.id, e.kind,
       (SELECT count(*) + 1 FROM audit_trail AS a
        WHERE (a.generation, a.transaction, a.event_number) < (e.generation, e.transaction::text::bigint, e.number)) AS number
FROM event AS e
WHERE e.audited
  AND (e.generation, e.transaction, e.number) <= (:generation, (:transaction::bigint)::text::xid8, :number)
  AND NOT EXISTS (SELECT FROM audit_trail AS a WHERE a.event_id = e.id)
ORDER BY e.generation, e.transaction, e.number
LIMIT 1
