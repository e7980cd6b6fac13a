-- Changes that wait, or were decided and have not taken effect.
SELECT name, value, proposed_by, proposed_at, state, decided_by, decided_at, reason, vouched_by
FROM critical_change ORDER BY name
