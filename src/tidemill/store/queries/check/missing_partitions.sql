-- Partitioned tables without a partition for one of the given ids.
SELECT DISTINCT p.name
FROM partitioned_table AS p
CROSS JOIN unnest(:ids::uuid[]) AS wanted (id)
WHERE NOT EXISTS (
    SELECT FROM pg_inherits AS i
    JOIN pg_class AS c ON c.oid = i.inhrelid
    CROSS JOIN LATERAL regexp_match(
        pg_get_expr(c.relpartbound, c.oid), 'FROM \(''([0-9a-f-]+)''\) TO \(''([0-9a-f-]+)''\)'
    ) AS bounds
    WHERE i.inhparent = p.name::regclass AND wanted.id >= bounds[1]::uuid AND wanted.id < bounds[2]::uuid
)
ORDER BY 1
