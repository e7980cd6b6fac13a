-- The accepted value of each critical setting.
SELECT name, value FROM critical_setting
