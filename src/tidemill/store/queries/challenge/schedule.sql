-- Note how a node stands after a challenge, and when the next is due. The node is locked by the caller.
UPDATE node_challenge
SET due_at = :due_at, late = :late, refused = :refused,
    passed_at = CASE WHEN :state = 'passed' THEN :now::timestamptz WHEN :state = 'expired' THEN passed_at END
WHERE node_id = :node_id
