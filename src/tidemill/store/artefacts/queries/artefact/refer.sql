-- The artefacts of one account or of all that a reference may mean: by the end of their ids, by the names of inputs and
-- models, or the one at a place, newest first. Results are found through their jobs: they all have the same name. What is
-- not asked for is null, and costs nothing.
WITH ended AS MATERIALIZED (
    SELECT id, account_id, name, purpose AS state FROM artefact
    WHERE right(id::text, 8) = right(:id_end, 8) AND replace(id::text, '-', '') LIKE '%' || :id_end
)
SELECT id, account_id, name, state FROM ended WHERE :owner::uuid IS NULL OR account_id = :owner
UNION ALL
(SELECT id, account_id, name, purpose FROM artefact
 WHERE name = :name AND purpose <> 'result' AND :owner::uuid IS NULL ORDER BY id DESC LIMIT :limit)
UNION ALL
(SELECT id, account_id, name, purpose FROM artefact
 WHERE name = :name AND purpose <> 'result' AND account_id = :owner ORDER BY id DESC LIMIT :limit)
UNION ALL
(SELECT id, account_id, name, purpose FROM artefact
 WHERE :back::bigint IS NOT NULL AND :owner::uuid IS NULL ORDER BY id DESC LIMIT 1 OFFSET :back)
UNION ALL
(SELECT id, account_id, name, purpose FROM artefact
 WHERE :back::bigint IS NOT NULL AND account_id = :owner ORDER BY id DESC LIMIT 1 OFFSET :back)
