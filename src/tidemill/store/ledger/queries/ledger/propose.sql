-- Keep an adjustment until a second operator has decided.
INSERT INTO adjustment (id, debit_id, credit_id, amount_uc, currency, reason, proposed_by, proposed_at)
VALUES (:id, :debit_id, :credit_id, :amount_uc, :currency, :reason, :proposed_by, :proposed_at)
