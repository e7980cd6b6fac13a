-- End jobs whose last task has ended. The transaction that counted it has locked their rows.
UPDATE job AS j SET state = e.state, ended_at = :now
FROM unnest(:ids::text::uuid[], :states::text::text[]) AS e (id, state)
WHERE j.id = e.id
