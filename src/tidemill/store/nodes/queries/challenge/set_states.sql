-- Set the states of challenges that the caller has locked.
UPDATE challenge AS c SET state = s.state
FROM unnest(:ids::uuid[], :states::text[]) AS s (id, state) WHERE c.id = s.id
