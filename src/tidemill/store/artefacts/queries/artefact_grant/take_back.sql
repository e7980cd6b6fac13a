-- Take back the grants of these attempts, because the attempts are over.
DELETE FROM artefact_grant WHERE attempt_id = ANY (:attempt_ids::uuid[])
