-- Set the language of letters.
UPDATE account SET language = :language WHERE id = :id AND deleted_at IS NULL
