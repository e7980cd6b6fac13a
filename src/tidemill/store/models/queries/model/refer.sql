-- The models that a reference may mean: by the end of their ids, by their names, whatever the case, or the one at a place,
-- newest first. Everybody sees every model, and a pool has few.
WITH placed AS (SELECT id, name, row_number() OVER (ORDER BY id DESC) - 1 AS place FROM model)
SELECT id, NULL::uuid AS account_id, name, '' AS state FROM placed
WHERE (:id_end::text IS NULL OR replace(id::text, '-', '') LIKE '%' || :id_end)
  AND (:name::text IS NULL OR lower(name) = lower(:name))
  AND (:back::bigint IS NULL OR place = :back)
ORDER BY id DESC LIMIT :limit
