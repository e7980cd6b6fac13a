-- Revoke a key, now or when an overlap ends. A key that ends sooner keeps its end.
UPDATE api_key SET revoked_at = :at, successor_id = coalesce(successor_id, :successor_id)
WHERE id = :id AND account_id = :account_id AND (revoked_at IS NULL OR revoked_at > :at)
RETURNING name
