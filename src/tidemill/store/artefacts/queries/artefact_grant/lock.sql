-- Whether a node may still upload an attempt's result. Locked until the transaction ends: whoever takes the grant back
-- waits, and then sees the uploads that began under it.
SELECT attempt_id FROM artefact_grant
WHERE node_id = :node_id AND attempt_id = :attempt_id AND access = 'write'
FOR UPDATE
