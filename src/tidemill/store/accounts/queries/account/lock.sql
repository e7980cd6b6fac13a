-- Lock an account: whoever decides on its state waits for whoever is deciding. Rows that only name it need not wait.
SELECT id FROM account WHERE id = :id AND deleted_at IS NULL FOR NO KEY UPDATE
