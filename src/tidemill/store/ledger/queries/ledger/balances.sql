-- The accounts and their balances. Accounts without a floor are summed from their last checkpoint.
SELECT a.id, a.kind, a.owner_id, o.address AS owner_address, a.name, a.currency, a.frozen, a.opened_at,
       CASE WHEN a.floored THEN a.posted_uc ELSE posted_until(a.id, 9223372036854775807) END AS posted_uc, a.held_uc
FROM ledger_account AS a LEFT JOIN account AS o ON o.id = a.owner_id
WHERE (:ids::uuid[] IS NULL OR a.id = ANY(:ids)) AND (:after::uuid IS NULL OR a.id > :after)
  AND (:kind::text IS NULL OR a.kind = :kind) AND (:owner_id::uuid IS NULL OR a.owner_id = :owner_id)
ORDER BY a.id
LIMIT :limit
