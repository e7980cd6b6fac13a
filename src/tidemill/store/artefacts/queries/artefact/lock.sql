-- One artefact, locked until the transaction ends: whoever wants to refer to it waits.
SELECT id, account_id, digest, size_bytes, purpose, name, made_at, attempt_id FROM artefact WHERE id = :id FOR UPDATE
