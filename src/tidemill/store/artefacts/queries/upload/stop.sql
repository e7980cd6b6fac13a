-- Make the uploads of these attempts overdue from now on, so that nobody continues them.
UPDATE upload SET expires_at = :now
WHERE attempt_id = ANY (:attempt_ids::uuid[]) AND artefact_id IS NULL AND expires_at > :now
