-- Put tokens back into many buckets. A bucket without a row is full and needs none. Lock rows ordered by key before
-- changing any, like leases do, to avoid deadlocks.
WITH locked AS MATERIALIZED (
    SELECT q.key, tokens * given.per_us / given.count AS refill_us
    FROM quota AS q
    JOIN unnest(:keys::text[], :counts::bigint[], :pers_us::bigint[], :tokens::bigint[])
        AS given (key, count, per_us, tokens) USING (key)
    ORDER BY q.key
    FOR UPDATE OF q
)
UPDATE quota AS q SET full_at_us = q.full_at_us - locked.refill_us FROM locked WHERE q.key = locked.key
