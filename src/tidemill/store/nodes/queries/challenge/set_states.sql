-- Set the states of challenges. The caller has locked them.
UPDATE challenge AS c SET state = s.state
FROM unnest(:ids::uuid[], :states::text[]) AS s (id, state) WHERE c.id = s.id
