-- What the books say of some accounts. Those without a floor have no balance to wait for.
SELECT a.id, a.currency, a.frozen, b.posted_uc - b.held_uc AS available_uc
FROM ledger_account AS a
LEFT JOIN ledger_balance AS b ON b.account_id = a.id
WHERE a.id = ANY(:ids::uuid[])
