-- The accounts of the ledger that a reference may mean, for operators: by the end of their ids, or, since their ids are
-- hashes and tell no time, at a place by when they were opened. What is not asked for is null, and costs nothing.
WITH ended AS MATERIALIZED (
    SELECT id, owner_id, name, kind AS state FROM ledger_account
    WHERE right(id::text, 8) = right(:id_end, 8) AND replace(id::text, '-', '') LIKE '%' || :id_end
)
SELECT id, owner_id AS account_id, name, state FROM ended
UNION ALL
(SELECT id, owner_id, name, kind FROM ledger_account
 WHERE :back::bigint IS NOT NULL ORDER BY opened_at DESC, id LIMIT 1 OFFSET :back)
