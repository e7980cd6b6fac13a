-- Whether an account was used before, and whether from such a device.
SELECT count(*) > 0 AS before, coalesce(bool_or(user_agent = :user_agent AND network = :network), false) AS known
FROM login_attempt WHERE account_id = :account_id AND result = 'ok'
