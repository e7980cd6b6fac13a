-- A model goes; of two who remove it at once, one hears that it did. Its artefact stays.
DELETE FROM model WHERE id = :id RETURNING id
