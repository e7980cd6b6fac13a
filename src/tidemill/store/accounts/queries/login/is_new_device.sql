-- Whether an account that was used before is used from this device for the first time.
SELECT EXISTS (SELECT FROM login_attempt WHERE account_id = :account_id AND result = 'ok')
   AND NOT EXISTS (SELECT FROM login_attempt
                   WHERE account_id = :account_id AND network = :network AND user_agent = :user_agent AND result = 'ok')
       AS is_new
