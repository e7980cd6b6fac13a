-- The accounts and what is on them, by kind and owner. Those without a floor are summed from their transfers.
SELECT a.id, a.kind, a.owner_id, a.name, a.currency, a.frozen, a.opened_at,
       (a.posted_uc + coalesce(moved.posted_uc, 0))::bigint AS posted_uc, a.held_uc
FROM ledger_account AS a
LEFT JOIN LATERAL (
    SELECT (SELECT coalesce(sum(amount_uc), 0) FROM transfer WHERE credit_id = a.id)
         - (SELECT coalesce(sum(amount_uc), 0) FROM transfer WHERE debit_id = a.id) AS posted_uc
) AS moved ON NOT a.floored
WHERE (:ids::uuid[] IS NULL OR a.id = ANY(:ids)) AND (:after::uuid IS NULL OR a.id > :after)
ORDER BY a.id
LIMIT :limit
