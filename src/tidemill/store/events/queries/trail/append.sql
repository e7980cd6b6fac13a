-- Append acts to the audit trail, in their order. A trigger lets in only what continues the chain; of two who append at
-- once the keys refuse the second, with everything it brought.
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
