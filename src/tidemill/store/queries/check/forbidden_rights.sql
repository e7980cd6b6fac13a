-- Tables that the program's role could rewrite, though it must only append to them.
SELECT name
FROM (SELECT name FROM partitioned_table UNION ALL VALUES ('audit_trail')) AS kept
WHERE has_table_privilege(:program, name, 'UPDATE')
   OR has_table_privilege(:program, name, 'DELETE')
   OR has_table_privilege(:program, name, 'TRUNCATE')
ORDER BY 1
