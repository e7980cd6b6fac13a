-- Append acts to the audit trail, in order. A trigger accepts only acts that continue the chain. If two processes
-- append at once, the keys refuse everything the second brought.
INSERT INTO audit_trail (
    number, generation, transaction, event_number, at, event_id, kind, subject, body, previous, sha256
)
SELECT a.*
FROM unnest(
         :numbers::bigint[], :generations::bigint[], :transactions::bigint[], :event_numbers::bigint[],
         :ats::timestamptz[], :event_ids::uuid[], :kinds::text[], :subjects::text[], :bodies::text[],
         :previous::bytea[], :sha256s::bytea[]
     ) AS a (number, generation, transaction, event_number, at, event_id, kind, subject, body, previous, sha256)
ORDER BY a.number
