-- Suspend a node with a reason, or let it work again, and note that it has to be told. The caller has locked the row.
UPDATE node SET suspended_reason = :reason, wishes = wishes + 1 WHERE id = :id
