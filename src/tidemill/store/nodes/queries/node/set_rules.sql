-- Set the rules of a node, and note that it has to be told. The caller has locked the row.
UPDATE node SET rules = :rules, wishes = wishes + 1 WHERE id = :id
