-- Delete all but the newest explanations. Whoever adds one meanwhile adds a newer one. If two delete at once, the
-- second finds the rows gone, because both start with the oldest.
DELETE FROM explanation
WHERE id <= (SELECT id FROM explanation ORDER BY id DESC OFFSET :most LIMIT 1)
RETURNING id
