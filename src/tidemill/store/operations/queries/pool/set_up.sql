-- The first operator takes over. If two try at once, one gets the row.
UPDATE pool SET set_up_at = :now, set_up_sha256 = NULL WHERE set_up_at IS NULL AND set_up_sha256 = :sha256 RETURNING id
