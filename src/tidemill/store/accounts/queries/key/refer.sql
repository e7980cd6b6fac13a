-- The working API keys of an account that a reference may mean: by the end of their ids, by their names, or the one at a
-- place, newest first. While a rotated key works on, two have its name. An account has few keys, so they are all looked at.
WITH own AS (
    SELECT id, account_id, name, prefix AS state, row_number() OVER (ORDER BY id DESC) - 1 AS place
    FROM api_key
    WHERE account_id = :owner AND (revoked_at IS NULL OR revoked_at > :now) AND (expires_at IS NULL OR expires_at > :now)
)
SELECT id, account_id, name, state FROM own
WHERE (:id_end::text IS NULL OR replace(id::text, '-', '') LIKE '%' || :id_end)
  AND (:name::text IS NULL OR name = :name)
  AND (:back::bigint IS NULL OR place = :back)
ORDER BY id DESC LIMIT :limit
