-- The months with transfers in the tables, oldest first.
SELECT month
FROM (
    SELECT substr(c.relname, 10, 4) || '-' || substr(c.relname, 15, 2) AS month
    FROM pg_inherits AS i
    JOIN pg_class AS c ON c.oid = i.inhrelid
    WHERE i.inhparent = 'transfer'::regclass
) AS present
WHERE month NOT IN (SELECT month FROM ledger_archive)
ORDER BY month
