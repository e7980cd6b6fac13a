-- The results about which an operator is asked that a reference may mean: by the end of their attempts' ids, or at a place,
-- newest first. Few wait, and they have an index of their own.
WITH asked AS (
    SELECT id, owner_id, row_number() OVER (ORDER BY id DESC) - 1 AS place
    FROM audit WHERE asked_at IS NOT NULL AND decided IS NULL
)
SELECT id, owner_id AS account_id, '' AS name, '' AS state FROM asked
WHERE (:id_end::text IS NULL OR replace(id::text, '-', '') LIKE '%' || :id_end)
  AND (:back::bigint IS NULL OR place = :back)
ORDER BY id DESC LIMIT :limit
