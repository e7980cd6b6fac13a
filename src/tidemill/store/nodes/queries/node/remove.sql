-- A node's life ends, and whoever holds its link has to close it. The row is locked by the caller.
UPDATE node SET life = 'deregistered', removed_at = :now, removed_reason = :reason, wishes = wishes + 1 WHERE id = :id
