-- One job, locked until the transaction ends.
SELECT id, account_id, state, closing, kind, asked, quote, quote_expires_at, budget_uc, hold_id, tasks, completed, failed,
       cancelled, spent_uc, made_at, confirmed_at, deadline_at, ended_at
FROM job WHERE id = :id FOR UPDATE
