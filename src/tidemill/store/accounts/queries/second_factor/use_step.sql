-- Note that a code was used; the first use switches the second factor on.
UPDATE account_totp SET used_step = :step, on_since = coalesce(on_since, :now)
WHERE account_id = :account_id AND used_step < :step
RETURNING account_id
