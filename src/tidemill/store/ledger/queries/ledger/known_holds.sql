-- Holds that were placed before under one of these ids.
SELECT id, account_id, amount_uc, currency, expires_at, cause, false AS linked FROM hold WHERE id = ANY(:ids::uuid[])
