-- Count verified results of owners. Rows are locked ordered by id, as everywhere, to avoid deadlocks.
INSERT INTO owner_record AS r (owner_id, verified)
SELECT o.owner_id, o.verified
FROM unnest(:owner_ids::text::uuid[], :verified::text::bigint[]) AS o (owner_id, verified)
ORDER BY o.owner_id
ON CONFLICT (owner_id) DO UPDATE SET verified = r.verified + excluded.verified
