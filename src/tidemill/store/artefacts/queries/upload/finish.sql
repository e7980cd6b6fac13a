-- Mark an upload as finished, unless it has expired. The caller holds the account's sums: if two finish it at once, one
-- succeeds.
UPDATE upload SET artefact_id = :artefact_id WHERE id = :id AND artefact_id IS NULL AND expires_at > :now
RETURNING id, account_id, begun_by, purpose, name, length_bytes, expected, expires_at, attempt_id, artefact_id
