-- Delete changes that have taken effect or were withdrawn. Under the lock of critical/lock.sql.
DELETE FROM critical_change WHERE name = ANY (:names::text[])
