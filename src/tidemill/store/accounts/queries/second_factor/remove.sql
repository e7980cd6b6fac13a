-- Remove the second factor. Returns no row if there was none.
WITH codes AS (DELETE FROM recovery_code WHERE account_id = :account_id)
DELETE FROM account_totp WHERE account_id = :account_id RETURNING account_id
