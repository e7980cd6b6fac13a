-- Transfers that name an account there is not, or mix currencies. Without such, the sum over all accounts is zero, for
-- every transfer takes from one what it gives to another.
SELECT count(*) FILTER (WHERE (d.currency = t.currency AND c.currency = t.currency) IS NOT TRUE) AS strays,
       count(*) AS transfers
FROM transfer AS t
LEFT JOIN ledger_account AS d ON d.id = t.debit_id
LEFT JOIN ledger_account AS c ON c.id = t.credit_id
