-- Delete the mailed tokens of an account, so that its earlier letters prove nothing.
DELETE FROM mailed_token WHERE account_id = :account_id
