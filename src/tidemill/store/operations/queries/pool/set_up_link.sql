-- Store a new set-up link, as long as nobody has used one. Only the newest is valid.
UPDATE pool SET set_up_sha256 = :sha256 WHERE set_up_at IS NULL RETURNING id
