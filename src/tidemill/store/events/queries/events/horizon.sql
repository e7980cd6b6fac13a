-- The cursor after everything that can be read now.
SELECT generation, pg_snapshot_xmin(pg_current_snapshot())::text::bigint - 1 AS transaction,
       9223372036854775807 AS number
FROM pool
