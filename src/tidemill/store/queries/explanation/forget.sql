-- Of explanations the newest stay. Whoever adds one meanwhile adds a newer one.
DELETE FROM explanation
WHERE id <= (SELECT id FROM explanation ORDER BY id DESC OFFSET :most LIMIT 1)
