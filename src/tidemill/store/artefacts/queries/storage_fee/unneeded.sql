-- What an account keeps and nothing needs, apart from results of its jobs since then, oldest first. Read only: whoever deletes
-- one locks it and looks again.
SELECT a.id, a.size_bytes
FROM artefact AS a
WHERE a.account_id = :account_id AND (a.purpose <> 'result' OR a.made_at < :results_since)
  AND NOT EXISTS (SELECT FROM artefact_use WHERE artefact_id = a.id)
  AND NOT EXISTS (SELECT FROM model WHERE artefact_id = a.id)
  AND NOT EXISTS (SELECT FROM lease WHERE attempt_id = a.attempt_id)
ORDER BY a.id
LIMIT :limit
