-- These attempts are over: their nodes may do nothing more for them.
DELETE FROM artefact_grant WHERE attempt_id = ANY (:attempt_ids::uuid[])
