-- Approve or reject an adjustment that is still undecided.
SELECT settle_adjustment(:id, :state, :decided_by, :operator_before, :decided_at) AS settled
