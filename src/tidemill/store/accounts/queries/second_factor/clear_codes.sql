-- The old recovery codes are no good any more.
DELETE FROM recovery_code WHERE account_id = :account_id
