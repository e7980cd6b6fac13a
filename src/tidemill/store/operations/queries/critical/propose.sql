-- Store changes that wait. A change to another value replaces the one before; a change that is there already stays as
-- it is, with the operator's decision. Under the lock of critical/lock.sql.
INSERT INTO critical_change AS c (name, value, proposed_by, proposed_at, state)
SELECT p.name, p.value, p.proposed_by, p.proposed_at, 'pending'
FROM unnest(:names::text[], :values::text[], :proposed_by::text[], :proposed_at::timestamptz[])
     AS p (name, value, proposed_by, proposed_at)
ON CONFLICT (name) DO UPDATE
SET value = excluded.value, proposed_by = excluded.proposed_by, proposed_at = excluded.proposed_at, state = 'pending',
    decided_by = NULL, decided_at = NULL, reason = NULL, vouched_by = NULL
WHERE c.value <> excluded.value
