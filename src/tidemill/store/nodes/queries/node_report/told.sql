-- Note until when a node's share of events is used up. The caller has locked its row.
UPDATE presence SET told_until = :told_until WHERE node_id = :node_id
