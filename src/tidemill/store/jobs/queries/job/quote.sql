-- Set what a job will cost. A customer may ask for a new quote until the job is confirmed. Returns the job as its
-- customer sees it: nothing is held, and no task waits before it is confirmed.
UPDATE job SET state = 'quoted', quote = :quote, quote_expires_at = :expires_at
WHERE id = :id AND state IN ('draft', 'quoted')
RETURNING id, account_id, state, closing, kind, asked, quote, quote_expires_at, budget_uc, 0::bigint AS held_uc,
          tasks, completed, failed, cancelled, 0::bigint AS waiting, 0::bigint AS placed,
          spent_uc, made_at, confirmed_at, deadline_at, ended_at
