-- Insert a new artefact. Its bytes are counted in the same transaction.
INSERT INTO artefact (id, account_id, digest, size_bytes, purpose, name, made_at, attempt_id)
VALUES (:id, :account_id, :digest, :size_bytes, :purpose, :name, :now, :attempt_id)
