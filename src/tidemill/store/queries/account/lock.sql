-- Lock an account: whoever decides on its state waits for whoever is deciding.
SELECT id FROM account WHERE id = :id AND deleted_at IS NULL FOR UPDATE
