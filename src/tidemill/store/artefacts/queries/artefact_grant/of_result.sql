-- Whether a node may upload an attempt's result.
SELECT attempt_id, node_id, account_id, access, size_max_bytes, until
FROM artefact_grant
WHERE node_id = :node_id AND attempt_id = :attempt_id AND access = 'write'
