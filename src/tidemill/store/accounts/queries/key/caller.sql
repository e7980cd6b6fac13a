-- An API key, by its hash or its id, with its account: every request needs both.
SELECT k.id, k.account_id, k.name, k.role, k.scopes, k.prefix, k.networks, k.spending_cap_uc, k.spent_uc, k.made_at,
       k.expires_at, k.last_used_at, k.revoked_at, k.successor_id, k.first_id, a.roles,
       a.blocked_reason IS NOT NULL AS blocked
FROM api_key k JOIN account a ON a.id = k.account_id
WHERE (k.sha256 = :sha256 OR k.id = :id) AND a.deleted_at IS NULL
