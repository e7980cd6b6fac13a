-- Insert a job as the customer sent it.
INSERT INTO job (id, account_id, state, kind, asked, budget_uc, made_at)
VALUES (:id, :account_id, 'draft', :kind, :asked, :budget_uc, :now)
