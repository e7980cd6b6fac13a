-- The uploads of these attempts are overdue from now on: nobody goes on with them.
UPDATE upload SET expires_at = :now
WHERE attempt_id = ANY (:attempt_ids::uuid[]) AND artefact_id IS NULL AND expires_at > :now
