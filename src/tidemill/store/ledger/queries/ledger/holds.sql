-- What is left of some holds.
SELECT id, account_id, amount_uc - captured_uc - released_uc AS left_uc, expires_at FROM hold WHERE id = ANY(:ids::uuid[])
