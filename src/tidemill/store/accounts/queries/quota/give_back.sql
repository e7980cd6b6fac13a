-- Put tokens back into many buckets. One that was forgotten meanwhile is full and needs none. Rows are locked in the order
-- of their keys before any is changed, as leases do it, so nobody waits in a circle.
WITH locked AS MATERIALIZED (
    SELECT q.key, tokens * given.per_us / given.count AS refill_us
    FROM quota AS q
    JOIN unnest(:keys::text[], :counts::bigint[], :pers_us::bigint[], :tokens::bigint[])
        AS given (key, count, per_us, tokens) USING (key)
    ORDER BY q.key
    FOR UPDATE OF q
)
UPDATE quota AS q SET full_at_us = q.full_at_us - locked.refill_us FROM locked WHERE q.key = locked.key
