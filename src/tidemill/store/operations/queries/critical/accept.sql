-- Store values as accepted. Under the lock of critical/lock.sql.
INSERT INTO critical_setting (name, value, accepted_at)
SELECT s.name, s.value, :now FROM unnest(:names::text[], :values::text[]) AS s (name, value)
ON CONFLICT (name) DO UPDATE SET value = excluded.value, accepted_at = excluded.accepted_at
