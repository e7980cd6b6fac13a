-- Keep what tasks demand. A demand is named by its hash, so whoever keeps it first has kept it for all. A known one is locked,
-- in the order of ids, until the transaction ends: nobody deletes it before its new tasks are there.
INSERT INTO demand (id, body, used_at)
SELECT d.id, d.body, :now FROM unnest(:ids::text::uuid[], :bodies::text::jsonb[]) AS d (id, body) ORDER BY d.id
ON CONFLICT (id) DO UPDATE SET used_at = excluded.used_at
WHERE demand.used_at < excluded.used_at - interval '1 hour'
