-- Every published tip, in order.
SELECT (e.body ->> 'number')::bigint AS number, decode(e.body ->> 'sha256', 'hex') AS sha256,
       (e.body ->> 'at_us')::bigint AS at
FROM event AS e
WHERE e.kind = 'audit.head_published'
ORDER BY e.generation, e.transaction, e.number
