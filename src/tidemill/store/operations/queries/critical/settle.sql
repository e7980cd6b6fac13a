-- Say an operator's word to a change, if it still waits and still wants the value that was decided on; else no row
-- comes back. A process that proposes another value meanwhile makes us wait for its row, and then find it changed.
UPDATE critical_change
SET state = :state, decided_by = :decided_by, decided_at = :decided_at, reason = :reason
WHERE name = :name AND value = :value AND state = 'pending'
RETURNING name
