-- Artefacts of one account or of all, newest first.
SELECT id, account_id, digest, size_bytes, purpose, name, made_at, attempt_id
FROM artefact
WHERE (:owner::uuid IS NULL OR account_id = :owner) AND (:purpose::text IS NULL OR purpose = :purpose)
  AND (:digest::text IS NULL OR digest = :digest) AND (:after::uuid IS NULL OR id < :after)
ORDER BY id DESC
LIMIT :limit
