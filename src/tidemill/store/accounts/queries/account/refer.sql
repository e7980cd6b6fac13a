-- The accounts that a reference may mean: by the end of their ids, by their address, or the one at a place, newest first.
-- Only operators see accounts, all of them. What is not asked for is null, and costs nothing.
WITH ended AS MATERIALIZED (
    SELECT id, address AS name FROM account
    WHERE right(id::text, 8) = right(:id_end, 8) AND replace(id::text, '-', '') LIKE '%' || :id_end
      AND deleted_at IS NULL
)
SELECT id, id AS account_id, name, '' AS state FROM ended
UNION ALL
SELECT id, id, address, '' FROM account WHERE address_key = lower(:name) AND deleted_at IS NULL
UNION ALL
(SELECT id, id, address, '' FROM account
 WHERE :back::bigint IS NOT NULL AND deleted_at IS NULL ORDER BY id DESC LIMIT 1 OFFSET :back)
