-- The rules of a node, and one thing more to tell it. The row is locked by the caller.
UPDATE node SET rules = :rules, wishes = wishes + 1 WHERE id = :id
