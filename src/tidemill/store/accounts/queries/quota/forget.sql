-- Delete full buckets, a batch at a time. A row that somebody is leasing from is skipped. A later caller makes a new
-- row, which begins full like the deleted one.
DELETE FROM quota WHERE key IN (
    SELECT key FROM quota WHERE full_at_us <= :full_before_us LIMIT :limit FOR UPDATE SKIP LOCKED
)
RETURNING key
