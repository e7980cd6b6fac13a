-- Write a checkpoint for every account that a month's transfers moved. Under the ledger's lock, a kept balance is the
-- sum of everything posted up to the number.
INSERT INTO ledger_checkpoint (account_id, number, at, posted_uc)
SELECT a.id, :number, greatest(:now, (SELECT timestamptz 'epoch' + last_value * interval '1 microsecond' FROM ledger_at)), CASE WHEN a.floored THEN a.posted_uc ELSE posted_until(a.id, :number) END
FROM ledger_account AS a
WHERE a.id IN (
    SELECT debit_id FROM transfer WHERE id >= :first_id AND id < :end_id
    UNION
    SELECT credit_id FROM transfer WHERE id >= :first_id AND id < :end_id
)
