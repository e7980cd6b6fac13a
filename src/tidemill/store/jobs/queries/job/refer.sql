-- The jobs of one account or of all that a reference may mean: by the end of their ids, the newest of a name for each
-- account, or the one at a place, newest first. What is not asked for is null, and costs nothing. Each part is written for
-- one account and for all, so that its index serves it whatever the plan knows of the values.
WITH ended AS MATERIALIZED (
    SELECT id, account_id, name, state FROM job
    WHERE right(id::text, 8) = right(:id_end, 8) AND replace(id::text, '-', '') LIKE '%' || :id_end
)
SELECT id, account_id, name, state FROM ended WHERE :owner::uuid IS NULL OR account_id = :owner
UNION ALL
(SELECT DISTINCT ON (account_id) id, account_id, name, state FROM job
 WHERE name = :name AND name <> '' AND :owner::uuid IS NULL ORDER BY account_id, id DESC LIMIT :limit)
UNION ALL
(SELECT id, account_id, name, state FROM job
 WHERE name = :name AND name <> '' AND account_id = :owner ORDER BY id DESC LIMIT 1)
UNION ALL
(SELECT id, account_id, name, state FROM job
 WHERE :back::bigint IS NOT NULL AND :owner::uuid IS NULL ORDER BY id DESC LIMIT 1 OFFSET :back)
UNION ALL
(SELECT id, account_id, name, state FROM job
 WHERE :back::bigint IS NOT NULL AND account_id = :owner ORDER BY id DESC LIMIT 1 OFFSET :back)
