-- Approve or reject an adjustment, unless that was done before.
SELECT settle_adjustment(:id, :state, :decided_by, :decided_at) AS settled
