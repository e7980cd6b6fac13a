-- Whether an account was used before, and whether from this device.
SELECT EXISTS (SELECT FROM login_attempt WHERE account_id = :account_id AND result = 'ok') AS before,
       EXISTS (SELECT FROM login_attempt
               WHERE account_id = :account_id AND network = :network AND user_agent = :user_agent AND result = 'ok') AS known
