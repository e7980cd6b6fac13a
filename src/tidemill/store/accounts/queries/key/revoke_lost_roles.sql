-- Revoke keys whose role their account has lost.
UPDATE api_key SET revoked_at = :now
WHERE account_id = :account_id AND role <> ALL (:roles::text[]) AND (revoked_at IS NULL OR revoked_at > :now)
RETURNING id, name
