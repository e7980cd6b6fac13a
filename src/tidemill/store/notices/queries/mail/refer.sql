-- The letters that a reference may mean, for who runs the pool: by the end of their ids, or the one at a place, newest
-- first. Letters are kept for a while only.
(SELECT id, NULL::uuid AS account_id, kind AS name, state FROM mail
 WHERE replace(id::text, '-', '') LIKE '%' || :id_end ORDER BY id DESC LIMIT :limit)
UNION ALL
(SELECT id, NULL::uuid, kind, state FROM mail WHERE :back::bigint IS NOT NULL ORDER BY id DESC LIMIT 1 OFFSET :back)
