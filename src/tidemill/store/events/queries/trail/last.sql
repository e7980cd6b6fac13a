-- The last act of the audit trail.
SELECT number, generation, transaction, event_number, at, event_id, kind, subject, body, previous, sha256
FROM audit_trail
ORDER BY number DESC
LIMIT 1
