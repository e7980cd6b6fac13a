-- Artefacts of deleted accounts that nothing needs any more.
SELECT a.id, a.account_id
FROM artefact_usage AS u
JOIN account AS owner ON owner.id = u.account_id AND owner.deleted_at IS NOT NULL
JOIN artefact AS a ON a.account_id = u.account_id
WHERE u.used_bytes > 0
  AND NOT EXISTS (SELECT FROM artefact_use WHERE artefact_id = a.id)
  AND NOT EXISTS (SELECT FROM model WHERE artefact_id = a.id)
  AND NOT EXISTS (SELECT FROM lease WHERE attempt_id = a.attempt_id)
LIMIT :limit
