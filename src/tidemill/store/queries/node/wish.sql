-- One thing more to tell every node of an account: whoever holds their links looks at them again. In one order, so that
-- nobody who changes several nodes at once waits for us while we wait for them.
UPDATE node SET wishes = wishes + 1
WHERE id IN (
    SELECT id FROM node WHERE account_id = :account_id AND removed_at IS NULL ORDER BY id FOR NO KEY UPDATE
)
