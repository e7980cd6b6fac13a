-- Revoke every key of an account.
UPDATE api_key SET revoked_at = :now WHERE account_id = :account_id AND (revoked_at IS NULL OR revoked_at > :now)
