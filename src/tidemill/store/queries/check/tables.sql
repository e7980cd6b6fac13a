-- Every table that holds rows, by its quoted name.
SELECT c.oid::regclass::text AS name
FROM pg_class AS c
WHERE c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace
ORDER BY 1
