-- Expire an account's jobs that nobody confirmed for a long time. A job that is being confirmed is locked, and skipped.
UPDATE job SET state = 'expired', ended_at = :now
WHERE id IN (
    SELECT id FROM job
    WHERE account_id = :account_id AND state = 'quoted' AND quote_expires_at < :before
    ORDER BY id LIMIT 1000 FOR UPDATE SKIP LOCKED
)
