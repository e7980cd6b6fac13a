-- A recovery code is used up by being used: of two that bring the same, one gets a row.
DELETE FROM recovery_code WHERE account_id = :account_id AND sha256 = :sha256 RETURNING account_id
