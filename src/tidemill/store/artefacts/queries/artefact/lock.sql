-- One artefact, which stays as it is until the caller's end: who is about to refer to it waits.
SELECT id, account_id, digest, size_bytes, purpose, name, made_at, attempt_id FROM artefact WHERE id = :id FOR UPDATE
