-- Jobs whose last task has ended. Their rows are locked by the transaction that counted it.
UPDATE job AS j SET state = e.state, ended_at = :now
FROM unnest(:ids::text::uuid[], :states::text::text[]) AS e (id, state)
WHERE j.id = e.id
