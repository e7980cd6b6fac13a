-- One artefact.
SELECT id, account_id, digest, size_bytes, purpose, name, made_at, attempt_id FROM artefact WHERE id = :id
