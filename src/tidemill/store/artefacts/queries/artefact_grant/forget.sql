-- Delete expired grants.
DELETE FROM artefact_grant
WHERE ctid = ANY (ARRAY(SELECT ctid FROM artefact_grant WHERE until < :before LIMIT :limit))
RETURNING attempt_id
