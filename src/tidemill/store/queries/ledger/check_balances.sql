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
SELECT b.account_id, b.posted_uc, b.held_uc,
       coalesce(m.posted_uc, 0)::bigint AS moved_uc, coalesce(r.held_uc, 0)::bigint AS reserved_uc
FROM ledger_balance AS b
LEFT JOIN moved AS m USING (account_id)
LEFT JOIN reserved AS r USING (account_id)
WHERE b.posted_uc <> coalesce(m.posted_uc, 0) OR b.held_uc <> coalesce(r.held_uc, 0)
LIMIT 100
