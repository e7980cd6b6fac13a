-- Use up the grant: the result has arrived, and the attempt may not upload another.
DELETE FROM artefact_grant WHERE attempt_id = :attempt_id AND access = 'write'
