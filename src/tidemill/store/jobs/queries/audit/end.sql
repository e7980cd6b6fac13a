-- Mark audits as ended whose tasks have ended, each once, whichever transaction ended the task.
UPDATE audit SET ended_at = :now WHERE id = ANY (:ids::uuid[]) AND ended_at IS NULL
