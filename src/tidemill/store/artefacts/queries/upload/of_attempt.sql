-- The upload of an attempt's result.
SELECT id, account_id, begun_by, purpose, name, length_bytes, expected, attempt_id, expires_at, artefact_id
FROM upload
WHERE attempt_id = :attempt_id
