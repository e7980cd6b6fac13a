-- Accounts whose balance is not what their transfers and open holds say. One statement sees one moment of the books, so
-- it may run beside live traffic.
WITH moved AS (
    SELECT account_id, sum(amount_uc) AS posted_uc
    FROM (
        SELECT credit_id AS account_id, amount_uc FROM transfer
        UNION ALL
        SELECT debit_id, -amount_uc FROM transfer
    ) AS sides
    GROUP BY account_id
), reserved AS (
    SELECT account_id, sum(amount_uc - captured_uc - released_uc) AS held_uc FROM hold GROUP BY account_id
)
SELECT a.id AS account_id
FROM ledger_account AS a
LEFT JOIN moved AS m ON m.account_id = a.id
LEFT JOIN reserved AS r ON r.account_id = a.id
WHERE a.floored AND a.posted_uc <> coalesce(m.posted_uc, 0) OR a.held_uc <> coalesce(r.held_uc, 0)
LIMIT 100
