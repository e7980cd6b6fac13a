-- Note how a node stands after a challenge, and when the next is due. What it showed before counts no more, unless it was
-- us who were away. The node is locked by the caller.
UPDATE node_challenge
SET due_at = :due_at, late = :late, refused = CASE WHEN :excused::boolean THEN refused ELSE :refused END,
    passed_at = CASE WHEN :passed::boolean THEN :now::timestamptz WHEN :excused::boolean THEN passed_at END
WHERE node_id = :node_id
