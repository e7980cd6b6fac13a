-- Give a job more time or a larger budget. The caller has locked it.
UPDATE job SET deadline_at = coalesce(:deadline_at, deadline_at), budget_uc = coalesce(:budget_uc, budget_uc) WHERE id = :id
