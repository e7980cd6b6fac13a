-- Mark an upload as finished, unless it has expired, and keep it until then at the most. The caller holds the account's
-- sums: if two finish it at once, one succeeds.
UPDATE upload SET artefact_id = :artefact_id, expires_at = least(expires_at, :until)
WHERE id = :id AND artefact_id IS NULL AND expires_at > :now
RETURNING id, account_id, begun_by, purpose, name, length_bytes, expected, expires_at, attempt_id, artefact_id
