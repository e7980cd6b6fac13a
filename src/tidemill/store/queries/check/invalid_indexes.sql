-- Indexes that a failed build has left unusable.
SELECT indexrelid::regclass::text AS name
FROM pg_index
WHERE NOT indisvalid AND indrelid IN (SELECT oid FROM pg_class WHERE relnamespace = 'public'::regnamespace)
