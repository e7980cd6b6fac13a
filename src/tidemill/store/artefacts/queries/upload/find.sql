-- One upload, under way or finished.
SELECT id, account_id, begun_by, purpose, name, length_bytes, expected, attempt_id, expires_at, artefact_id
FROM upload
WHERE id = :id
