-- Use up a recovery code: if two bring the same code, one gets a row.
DELETE FROM recovery_code WHERE account_id = :account_id AND sha256 = :sha256 RETURNING account_id
