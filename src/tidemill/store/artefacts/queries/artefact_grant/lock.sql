-- Whether a node may still upload an attempt's result. Held until the caller's end: who takes it back waits, and then
-- sees what was begun with it.
SELECT attempt_id FROM artefact_grant
WHERE node_id = :node_id AND attempt_id = :attempt_id AND access = 'write'
FOR UPDATE
