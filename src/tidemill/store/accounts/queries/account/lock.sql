-- Lock an account, so that decisions about its state happen one after the other. Rows that only refer to it need not
-- wait.
SELECT id FROM account WHERE id = :id AND deleted_at IS NULL FOR NO KEY UPDATE
