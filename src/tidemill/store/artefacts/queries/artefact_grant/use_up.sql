-- The result is here: no other is taken for this attempt.
DELETE FROM artefact_grant WHERE attempt_id = :attempt_id AND access = 'write'
