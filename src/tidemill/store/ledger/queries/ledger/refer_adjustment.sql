-- The adjustments that a reference may mean, for operators: by the end of their ids, or the one at a place, newest first.
-- They are made by hand, so there are few.
(SELECT id, NULL::uuid AS account_id, '' AS name, state FROM adjustment
 WHERE replace(id::text, '-', '') LIKE '%' || :id_end ORDER BY id DESC LIMIT :limit)
UNION ALL
(SELECT id, NULL::uuid, '', state FROM adjustment
 WHERE :back::bigint IS NOT NULL ORDER BY id DESC LIMIT 1 OFFSET :back)
