-- The letters of an account prove nothing any more.
DELETE FROM mailed_token WHERE account_id = :account_id
