-- The first act that says something else than the event it tells of. An event that is no longer there tells nothing.
SELECT a.number
FROM audit_trail AS a
JOIN event AS e ON e.id = a.event_id
WHERE (a.generation, a.transaction, a.event_number, a.at, a.kind, a.subject)
      <> (e.generation, e.transaction::text::bigint, e.number, e.at, e.kind, e.subject)
   OR CASE WHEN pg_input_is_valid(a.body, 'jsonb') THEN a.body::jsonb <> e.body ELSE true END
ORDER BY a.number
LIMIT 1
