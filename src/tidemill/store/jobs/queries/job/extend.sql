-- Give a job more time, a larger budget, or another hold. The caller has locked it.
UPDATE job
SET deadline_at = coalesce(:deadline_at, deadline_at), budget_uc = coalesce(:budget_uc, budget_uc),
    hold_id = coalesce(:hold_id, hold_id)
WHERE id = :id
