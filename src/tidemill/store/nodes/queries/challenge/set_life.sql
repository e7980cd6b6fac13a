-- Set where a node is in its life. It is locked by the caller.
UPDATE node SET life = :life WHERE id = :node_id
