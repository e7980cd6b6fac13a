-- The first act that differs from its event. An event that was deleted cannot be compared.
SELECT a.number
FROM audit_trail AS a
JOIN event AS e ON e.id = a.event_id
WHERE (a.generation, a.transaction, a.event_number, a.at, a.kind, a.subject)
      <> (e.generation, e.transaction::text::bigint, e.number, e.at, e.kind, e.subject)
   OR CASE WHEN pg_input_is_valid(a.body, 'jsonb') THEN a.body::jsonb <> e.body ELSE true END
ORDER BY a.number
LIMIT 1
