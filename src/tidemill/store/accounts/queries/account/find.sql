-- One account, by its address or its id. Deleted accounts are left out.
SELECT a.id, a.address, a.password_hash, a.roles, a.language, a.kyc, a.kyc_reason, a.blocked_reason, a.created_at,
       t.on_since AS second_factor_since
FROM account a LEFT JOIN account_totp t ON t.account_id = a.id
WHERE a.deleted_at IS NULL AND (a.address_key = :address_key OR a.id = :id)
