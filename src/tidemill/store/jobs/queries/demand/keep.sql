-- Keep what tasks demand. A demand is named by its hash, so whoever keeps it first has kept it for all.
INSERT INTO demand (id, body)
SELECT d.id, d.body FROM unnest(:ids::text::uuid[], :bodies::text::jsonb[]) AS d (id, body) ORDER BY d.id
ON CONFLICT DO NOTHING
