-- Since when the first of the other operators has been one; null if there is none. It only tells people when an approval
-- will count: the approval itself looks again, so a race here changes nothing.
SELECT min(operator_since) FROM account
WHERE id <> :id AND operator_since IS NOT NULL AND blocked_reason IS NULL AND deleted_at IS NULL
