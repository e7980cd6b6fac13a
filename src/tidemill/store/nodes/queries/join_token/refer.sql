-- The join tokens of an account that a reference may mean: by the end of their ids, or, of those that are open, by their
-- names or at a place, newest first. An account has few tokens, so they are all looked at.
WITH own AS (
    SELECT id, account_id, name, revoked_at IS NULL AND expires_at > :now AND uses < uses_max AS open
    FROM join_token WHERE account_id = :owner
), placed AS (
    SELECT id, account_id, name, open, row_number() OVER (PARTITION BY open ORDER BY id DESC) - 1 AS place FROM own
)
SELECT id, account_id, name, '' AS state FROM placed
WHERE (:id_end::text IS NULL OR replace(id::text, '-', '') LIKE '%' || :id_end)
  AND (:name::text IS NULL OR (name = :name AND open))
  AND (:back::bigint IS NULL OR (place = :back AND open))
ORDER BY id DESC LIMIT :limit
