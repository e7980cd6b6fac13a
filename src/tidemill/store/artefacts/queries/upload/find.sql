-- One upload, under way or finished.
SELECT id, account_id, begun_by, purpose, name, length_bytes, expected, expires_at, attempt_id, artefact_id
FROM upload
WHERE id = :id
