-- Set the life state of a node. The caller has locked it.
UPDATE node SET life = :life WHERE id = :node_id
