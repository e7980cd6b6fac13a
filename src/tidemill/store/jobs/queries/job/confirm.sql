-- Confirm a quoted job. The caller has locked it. Returns the job as its customer sees it: until the transaction ends,
-- all of the hold is left and all tasks wait.
UPDATE job SET state = 'queued', hold_id = :hold_id, tasks = :tasks, confirmed_at = :now, deadline_at = :deadline_at
WHERE id = :id
RETURNING id, account_id, state, closing, kind, asked, quote, quote_expires_at, budget_uc, :held_uc::bigint AS held_uc,
          tasks, completed, failed, cancelled, tasks::bigint AS waiting, 0::bigint AS placed,
          spent_uc, made_at, confirmed_at, deadline_at, ended_at
