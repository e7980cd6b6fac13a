-- Transfers that name a missing account, or mix currencies. Without them the sum over all accounts is zero, because
-- every transfer takes from one account what it gives to another.
SELECT count(*) FILTER (WHERE (d.currency = t.currency AND c.currency = t.currency) IS NOT TRUE) AS strays,
       count(*) AS transfers
FROM transfer AS t
LEFT JOIN ledger_account AS d ON d.id = t.debit_id
LEFT JOIN ledger_account AS c ON c.id = t.credit_id
