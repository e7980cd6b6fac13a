-- Take tokens from many buckets at once, as `core.limits.take` does from one: the wanted number, or as many as there
-- are. A bucket without a row is full. Lock rows ordered by key, and only for this statement, so that two callers who
-- lease at once wait for each other without a deadlock.
INSERT INTO quota AS q (key, full_at_us, count, per_us, granted)
SELECT key, :now_us::bigint + (wanted * per_us + count - 1) / count, count, per_us, wanted
FROM unnest(:keys::text[], :counts::bigint[], :pers_us::bigint[], :wanted::bigint[]) AS ask (key, count, per_us, wanted)
ORDER BY key
ON CONFLICT (key) DO UPDATE
SET (full_at_us, count, per_us, granted) = (
    SELECT stands_at_us + (got * EXCLUDED.per_us + EXCLUDED.count - 1) / EXCLUDED.count,
        EXCLUDED.count, EXCLUDED.per_us, got
    FROM (
        -- A row from so far ahead was written before the time was set back.
        SELECT CASE
            WHEN q.full_at_us > :now_us + EXCLUDED.per_us + :skew_us::bigint THEN :now_us + EXCLUDED.per_us
            ELSE greatest(q.full_at_us, :now_us)
        END AS stands_at_us
    ) AS bucket
    CROSS JOIN LATERAL (
        SELECT least(
            EXCLUDED.granted,
            greatest(0, (:now_us + EXCLUDED.per_us - stands_at_us) * EXCLUDED.count / EXCLUDED.per_us)
        ) AS got
    ) AS lease
)
RETURNING key, granted AS tokens, full_at_us AS full_at
