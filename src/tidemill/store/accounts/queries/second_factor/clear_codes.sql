-- Delete the old recovery codes.
DELETE FROM recovery_code WHERE account_id = :account_id
