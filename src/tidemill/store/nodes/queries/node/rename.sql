-- Rename a node. The caller has locked the row.
UPDATE node SET name = :name WHERE id = :id
