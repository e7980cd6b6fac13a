-- Store an operator's decision on a change, if it still waits and still wants the same value; else return no row. If a
-- process proposes another value meanwhile, we wait for its row, and then find it changed.
UPDATE critical_change
SET state = :state, decided_by = :decided_by, decided_at = :decided_at, reason = :reason
WHERE name = :name AND value = :value AND state = 'pending'
RETURNING name
