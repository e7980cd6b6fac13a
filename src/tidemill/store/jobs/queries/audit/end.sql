-- Audits whose tasks have ended, by whichever transaction ended them: each of them once.
UPDATE audit SET ended_at = :now WHERE id = ANY (:ids::uuid[]) AND ended_at IS NULL
