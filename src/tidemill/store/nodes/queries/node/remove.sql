-- Remove a node; whoever holds its link has to close it. The caller has locked the row.
UPDATE node SET life = 'deregistered', removed_at = :now, removed_reason = :reason, wishes = wishes + 1 WHERE id = :id
