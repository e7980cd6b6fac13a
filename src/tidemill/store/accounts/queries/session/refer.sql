-- The open sessions of an account that a reference may mean: by the end of their ids, or the one at a place, newest first.
WITH own AS (
    SELECT id, account_id, row_number() OVER (ORDER BY id DESC) - 1 AS place
    FROM session WHERE account_id = :owner AND ended_at IS NULL AND expires_at > :now
)
SELECT id, account_id, '' AS name, '' AS state FROM own
WHERE (:id_end::text IS NULL OR replace(id::text, '-', '') LIKE '%' || :id_end)
  AND (:back::bigint IS NULL OR place = :back)
ORDER BY id DESC LIMIT :limit
