-- Which of these uploads are under way.
SELECT id FROM upload WHERE id = ANY (:ids::uuid[]) AND artefact_id IS NULL
