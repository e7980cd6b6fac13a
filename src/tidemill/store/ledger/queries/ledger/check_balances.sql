-- Accounts whose balance or checkpoints differ from their transfers and open holds, and currencies whose accounts do
-- not sum to zero. One statement sees one moment of the books, so it may run beside live traffic. Archived transfers
-- count through the checkpoints of their archive.
WITH base AS (
    SELECT DISTINCT ON (account_id) account_id, number, posted_uc
    FROM ledger_checkpoint
    WHERE number IN (SELECT number FROM ledger_archive)
    ORDER BY account_id, number DESC
), moved AS (
    SELECT s.account_id, sum(s.amount_uc) AS posted_uc
    FROM (
        SELECT credit_id AS account_id, amount_uc, number FROM transfer
        UNION ALL
        SELECT debit_id, -amount_uc, number FROM transfer
    ) AS s
    LEFT JOIN base AS b ON b.account_id = s.account_id
    WHERE s.number > coalesce(b.number, -1)
    GROUP BY s.account_id
), reserved AS (
    SELECT account_id, sum(amount_uc - captured_uc - released_uc) AS held_uc FROM hold GROUP BY account_id
), found AS (
    SELECT a.id, a.currency, a.floored, a.posted_uc, a.held_uc,
           coalesce(b.posted_uc, 0) + coalesce(m.posted_uc, 0) AS moved_uc, coalesce(r.held_uc, 0) AS reserved_uc
    FROM ledger_account AS a
    LEFT JOIN base AS b ON b.account_id = a.id
    LEFT JOIN moved AS m ON m.account_id = a.id
    LEFT JOIN reserved AS r ON r.account_id = a.id
)
(SELECT id::text AS wrong FROM found WHERE (floored AND posted_uc <> moved_uc) OR held_uc <> reserved_uc LIMIT 100)
UNION ALL
(SELECT 'the sum of all accounts in ' || currency FROM found GROUP BY currency HAVING sum(moved_uc) <> 0 LIMIT 100)
