-- Remove a model. If two remove it at once, one gets a row. Its artefact stays.
DELETE FROM model WHERE id = :id RETURNING id
