-- Note that the owner typed the password again.
UPDATE session SET fresh_at = :now, second_factor = second_factor OR :second_factor WHERE id = :id AND ended_at IS NULL
RETURNING id
