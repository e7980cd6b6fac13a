-- Of explanations the newest stay. Whoever adds one meanwhile adds a newer one; of two who forget the second finds them
-- gone, since both go from the oldest on.
DELETE FROM explanation
WHERE id <= (SELECT id FROM explanation ORDER BY id DESC OFFSET :most LIMIT 1)
RETURNING id
