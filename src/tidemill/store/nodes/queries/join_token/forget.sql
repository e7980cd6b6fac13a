-- Tokens of an account that let nobody in and are over for long. Those that did are named by their nodes, and stay.
DELETE FROM join_token
WHERE account_id = :account_id AND uses = 0 AND (expires_at < :over_before OR revoked_at < :over_before)
