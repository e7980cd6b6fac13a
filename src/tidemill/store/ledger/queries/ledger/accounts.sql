-- What the books say about some accounts. Accounts without a floor have no balance to wait for.
SELECT id, currency, frozen, CASE WHEN floored THEN posted_uc - held_uc END AS available_uc
FROM ledger_account
WHERE id = ANY(:ids::uuid[])
