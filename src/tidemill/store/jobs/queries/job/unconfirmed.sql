-- How many jobs of an account wait to be confirmed.
SELECT count(*) AS unconfirmed FROM job WHERE account_id = :account_id AND state = 'quoted'
