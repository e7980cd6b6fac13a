-- Suspend a node with a reason, or let it work again; and one thing more to tell it. The row is locked by the caller.
UPDATE node SET suspended_reason = :reason, wishes = wishes + 1 WHERE id = :id
