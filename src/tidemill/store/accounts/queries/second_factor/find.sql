-- The secret of an account, locked: if two bring one code, the second finds it used.
SELECT secret, used_step, on_since FROM account_totp WHERE account_id = :account_id FOR UPDATE
