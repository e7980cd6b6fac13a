-- Transfers that were posted before under one of these ids.
SELECT id, debit_id, credit_id, amount_uc, currency, kind, cause, hold_id, false AS linked FROM transfer WHERE id = ANY(:ids::uuid[])
