-- A job as it was sent.
INSERT INTO job (id, account_id, state, kind, asked, budget_uc, made_at)
VALUES (:id, :account_id, 'draft', :kind, :asked, :budget_uc, :now)
