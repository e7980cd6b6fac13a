-- Adjustments, newest first: some of them, or those in one state.
SELECT id, debit_id, credit_id, amount_uc, currency, reason, proposed_by, proposed_at, state, decided_by, decided_at
FROM adjustment
WHERE (:id::uuid IS NULL OR id = :id) AND (:state::text IS NULL OR state = :state) AND (:before::uuid IS NULL OR id < :before)
ORDER BY id DESC
LIMIT :limit
