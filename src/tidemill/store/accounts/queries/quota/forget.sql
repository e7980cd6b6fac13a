-- Forget buckets that are full, a batch at a time. A row that somebody is leasing from is left alone; one who comes
-- after the deletion makes a new row, which begins full as this one was.
DELETE FROM quota WHERE key IN (
    SELECT key FROM quota WHERE full_at_us <= :full_before_us LIMIT :limit FOR UPDATE SKIP LOCKED
)
RETURNING key
