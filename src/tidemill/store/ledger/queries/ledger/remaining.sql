-- The part of every account's balance that the transfers in the tables do not explain: it must equal what the archives
-- say.
WITH moved AS (
    SELECT account_id, sum(amount_uc) AS posted_uc
    FROM (
        SELECT credit_id AS account_id, amount_uc FROM transfer
        UNION ALL
        SELECT debit_id, -amount_uc FROM transfer
    ) AS sides
    GROUP BY account_id
)
SELECT a.id,
       (CASE WHEN a.floored THEN a.posted_uc ELSE posted_until(a.id, 9223372036854775807) END
        - coalesce(m.posted_uc, 0))::bigint AS archived_uc
FROM ledger_account AS a
LEFT JOIN moved AS m ON m.account_id = a.id
