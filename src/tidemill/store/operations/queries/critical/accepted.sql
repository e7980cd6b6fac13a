-- The value of each critical setting that the pool has accepted.
SELECT name, value FROM critical_setting
