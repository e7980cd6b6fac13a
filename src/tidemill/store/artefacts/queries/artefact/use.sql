-- Note which artefacts unfinished tasks need, and lock them, ordered by id, until the transaction ends, so that none is
-- deleted meanwhile. Returns those that exist.
WITH wanted AS (
    SELECT task_id, artefact_id FROM unnest(:task_ids::uuid[], :artefact_ids::uuid[]) AS w (task_id, artefact_id)
), there AS (
    SELECT id FROM artefact WHERE id = ANY (:artefact_ids::uuid[]) ORDER BY id FOR KEY SHARE
), used AS (
    INSERT INTO artefact_use (task_id, artefact_id)
    SELECT task_id, artefact_id FROM wanted JOIN there ON there.id = wanted.artefact_id
    ON CONFLICT DO NOTHING
)
SELECT id FROM there
