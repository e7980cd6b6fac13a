-- Acts, newest first, filtered by kind and subject.
SELECT number, generation, transaction, event_number, at, event_id, kind, subject, body, previous, sha256
FROM audit_trail
WHERE number < :before
  AND (:kind::text IS NULL OR kind = :kind)
  AND (:subject::text IS NULL OR subject = :subject)
ORDER BY number DESC
LIMIT :limit
