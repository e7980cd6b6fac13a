-- Delete answers given before an instant, a batch at a time.
DELETE FROM answer WHERE (caller, route, key) IN (
    SELECT caller, route, key FROM answer WHERE given_at < :given_before LIMIT :limit FOR UPDATE SKIP LOCKED
)
RETURNING key
