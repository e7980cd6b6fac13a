-- Delete an account's tokens that expired long ago without admitting anybody. Nodes refer to the others, so those stay.
DELETE FROM join_token
WHERE account_id = :account_id AND uses = 0 AND (expires_at < :over_before OR revoked_at < :over_before)
