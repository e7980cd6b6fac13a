-- One job, locked until the transaction ends.
SELECT id, account_id, state, closing, asked, quote, quote_expires_at, budget_uc, hold_id, tasks, completed, failed,
       cancelled, deadline_at
FROM job WHERE id = :id FOR UPDATE
