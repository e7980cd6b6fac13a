-- The working API keys of an account, newest first. Spending is counted on the first key of a line.
SELECT k.id, k.account_id, k.name, k.role, k.scopes, k.prefix, k.networks, k.spending_cap_uc, f.spent_uc, k.made_at,
       k.expires_at, k.last_used_at, k.revoked_at, k.successor_id, k.first_id
FROM api_key k JOIN api_key f ON f.id = k.first_id
WHERE k.account_id = :account_id AND (k.revoked_at IS NULL OR k.revoked_at > :now)
  AND (k.expires_at IS NULL OR k.expires_at > :now) AND (:id::uuid IS NULL OR k.id = :id)
ORDER BY k.id DESC
