-- How many recovery codes an account has left.
SELECT count(*) AS codes FROM recovery_code WHERE account_id = :account_id
