-- Uploads that have waited too long, and finished ones that nobody asks about any more.
SELECT id, account_id, begun_by, purpose, name, length_bytes, expected, expires_at, attempt_id, artefact_id
FROM upload
WHERE expires_at <= :now
ORDER BY expires_at
LIMIT :limit
