-- Checkpoints that differ from the one before plus what was posted between. Checkpoints of archives are not checked.
SELECT c.account_id
FROM (
    SELECT account_id, number, posted_uc,
           lag(number) OVER each AS number_before, lag(posted_uc) OVER each AS posted_before_uc
    FROM ledger_checkpoint
    WINDOW each AS (PARTITION BY account_id ORDER BY number)
) AS c
WHERE c.number NOT IN (SELECT number FROM ledger_archive)
  AND c.posted_uc <> coalesce(c.posted_before_uc, 0)
    + coalesce((SELECT sum(amount_uc) FROM transfer
                WHERE credit_id = c.account_id AND number > coalesce(c.number_before, -1) AND number <= c.number), 0)
    - coalesce((SELECT sum(amount_uc) FROM transfer
                WHERE debit_id = c.account_id AND number > coalesce(c.number_before, -1) AND number <= c.number), 0)
LIMIT 100
