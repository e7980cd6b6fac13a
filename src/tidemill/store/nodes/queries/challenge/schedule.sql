-- Write how a node stands after a challenge, and when the next is due. Its earlier proofs no longer count, unless it
-- was us who were away. The caller has locked the node.
UPDATE node_challenge
SET due_at = :due_at, late = :late, refused = CASE WHEN :excused::boolean THEN refused ELSE :refused END,
    passed_at = CASE WHEN :passed::boolean THEN :now::timestamptz WHEN :excused::boolean THEN passed_at END
WHERE node_id = :node_id
