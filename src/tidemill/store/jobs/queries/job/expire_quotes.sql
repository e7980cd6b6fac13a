-- Jobs of an account that nobody confirmed in a long time are over. One that is being confirmed is locked, and passed over.
UPDATE job SET state = 'expired', ended_at = :now
WHERE id IN (
    SELECT id FROM job
    WHERE account_id = :account_id AND state = 'quoted' AND quote_expires_at < :before
    ORDER BY id LIMIT 1000 FOR UPDATE SKIP LOCKED
)
