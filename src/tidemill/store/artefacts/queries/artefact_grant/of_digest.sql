-- What a node may read of these bytes, for any attempt.
SELECT attempt_id, node_id, account_id, access, size_max_bytes, until
FROM artefact_grant
WHERE node_id = :node_id AND digest = :digest
