-- The balance of an account at an instant, counted forwards or backwards from the nearest checkpoint. A transfer posted
-- before the checkpoint's number but after the instant is subtracted again.
WITH base AS (
    (SELECT number, posted_uc, 0 AS later FROM ledger_checkpoint
     WHERE account_id = :account_id AND at <= :instant AND number >= coalesce(
         (SELECT max(c.number) FROM ledger_checkpoint AS c JOIN ledger_archive USING (number) WHERE c.account_id = :account_id),
         -1)
     ORDER BY number DESC LIMIT 1)
    UNION ALL
    (SELECT number, posted_uc, 1 FROM ledger_checkpoint
     WHERE account_id = :account_id AND number IN (SELECT number FROM ledger_archive) ORDER BY number DESC LIMIT 1)
    UNION ALL
    SELECT -1, 0, 2
    ORDER BY later LIMIT 1
)
SELECT (b.posted_uc
    + coalesce((SELECT sum(amount_uc) FROM transfer WHERE credit_id = :account_id AND number > b.number AND at <= :instant), 0)
    - coalesce((SELECT sum(amount_uc) FROM transfer WHERE debit_id = :account_id AND number > b.number AND at <= :instant), 0)
    - coalesce((SELECT sum(amount_uc) FROM transfer WHERE credit_id = :account_id AND number <= b.number AND at > :instant AND b.later = 1), 0)
    + coalesce((SELECT sum(amount_uc) FROM transfer WHERE debit_id = :account_id AND number <= b.number AND at > :instant AND b.later = 1), 0)
    )::bigint AS posted_uc,
    EXISTS (SELECT FROM ledger_archive WHERE last_at > :instant) AS archived
FROM base AS b
