-- Store an operator's decision on a change, if it still waits, still wants the same value and nobody else has approved it
-- meanwhile, and if whoever approves has been an operator since before an instant; else return no row. If somebody changes the row at the same time, we wait, and then find it changed.
UPDATE critical_change
SET state = :state, decided_by = :decided_by, decided_at = :decided_at, reason = :reason,
    vouched_by = :vouched_by
WHERE name = :name AND value = :value AND state = 'pending' AND vouched_by IS NOT DISTINCT FROM :vouched_before::text
  AND (:approver::text IS NULL OR EXISTS (
      SELECT FROM account WHERE 'account:' || id::text = :approver AND operator_since <= :operator_before
  ))
RETURNING name
