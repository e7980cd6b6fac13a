-- Remember refusals, so that the same id gets the same answer.
INSERT INTO refused_entry (id, entry, refusal, at)
SELECT r.id, r.entry, r.refusal, :now
FROM unnest(:ids::uuid[], :entries::jsonb[], :refusals::text[]) AS r (id, entry, refusal)
