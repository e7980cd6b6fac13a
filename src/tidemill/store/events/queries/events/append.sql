-- Append events in the caller's transaction, in the order given. The number comes from a sequence, which leaves gaps
-- when a transaction fails; readers order by transaction first, so gaps and late numbers do no harm.
INSERT INTO event (id, generation, at, kind, subject, body, public, audited, accounts)
SELECT e.id, (SELECT generation FROM pool), :now, e.kind, e.subject, e.body, e.public, e.audited, e.accounts::uuid[]
FROM unnest(
         :ids::uuid[], :kinds::text[], :subjects::text[], :bodies::jsonb[], :publics::boolean[], :audited::boolean[],
         :accounts::text[]
     ) WITH ORDINALITY AS e (id, kind, subject, body, public, audited, accounts, position)
ORDER BY e.position
