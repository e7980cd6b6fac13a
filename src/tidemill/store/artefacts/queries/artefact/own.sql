-- Those of these artefacts that an account has.
SELECT id, account_id, digest, size_bytes, purpose, name, made_at, attempt_id
FROM artefact WHERE id = ANY (:ids::uuid[]) AND account_id = :account_id
