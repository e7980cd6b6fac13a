-- Accounts after a cursor, newest first, filtered by address, role or state.
SELECT a.id, a.address, a.password_hash, a.roles, a.language, a.kyc, a.kyc_reason, a.blocked_reason, a.created_at,
       t.on_since AS second_factor_since
FROM account a LEFT JOIN account_totp t ON t.account_id = a.id
WHERE a.deleted_at IS NULL
  AND (:after::uuid IS NULL OR a.id < :after)
  AND (:address_key::text IS NULL OR a.address_key = :address_key)
  AND (:role::text IS NULL OR :role = ANY (a.roles))
  AND (:kyc::text IS NULL OR a.kyc = :kyc)
  AND (:blocked::boolean IS NULL OR (a.blocked_reason IS NOT NULL) = :blocked)
ORDER BY a.id DESC
LIMIT :limit
