-- The nodes of one account or of all that a reference may mean: by the end of their ids, by their names, or the one at a
-- place, newest first. A removed node is found by its id only. What is not asked for is null, and costs nothing.
WITH ended AS MATERIALIZED (
    SELECT id, account_id, name, life AS state FROM node
    WHERE right(id::text, 8) = right(:id_end, 8) AND replace(id::text, '-', '') LIKE '%' || :id_end
), called AS MATERIALIZED (
    SELECT id, account_id, name, life AS state FROM node
    WHERE name = :name AND removed_at IS NULL AND (:owner::uuid IS NULL OR account_id = :owner)
)
SELECT id, account_id, name, state FROM ended WHERE :owner::uuid IS NULL OR account_id = :owner
UNION ALL
(SELECT id, account_id, name, state FROM called ORDER BY id DESC LIMIT :limit)
UNION ALL
(SELECT id, account_id, name, life FROM node
 WHERE :back::bigint IS NOT NULL AND :owner::uuid IS NULL AND removed_at IS NULL
 ORDER BY id DESC LIMIT 1 OFFSET :back)
UNION ALL
(SELECT id, account_id, name, life FROM node
 WHERE :back::bigint IS NOT NULL AND account_id = :owner AND removed_at IS NULL
 ORDER BY id DESC LIMIT 1 OFFSET :back)
