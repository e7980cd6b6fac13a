-- Acts by number, from one to another, in the order in which they were written.
SELECT number, generation, transaction, event_number, at, event_id, kind, subject, body, previous, sha256
FROM audit_trail
WHERE number > :after AND number <= :until
ORDER BY number
LIMIT :limit
