-- Another name for a node. The row is locked by the caller.
UPDATE node SET name = :name WHERE id = :id
