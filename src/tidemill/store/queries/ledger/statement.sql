-- The transfers of one account, newest first. Each side has its own index, so both are read only as far as needed.
SELECT id, at, kind, cause, counterpart_id, amount_uc
FROM (
    (SELECT id, at, kind, cause, credit_id AS counterpart_id, -amount_uc AS amount_uc
     FROM transfer
     WHERE debit_id = :account_id AND (:before::uuid IS NULL OR id < :before)
     ORDER BY id DESC LIMIT :limit)
    UNION ALL
    (SELECT id, at, kind, cause, debit_id, amount_uc
     FROM transfer
     WHERE credit_id = :account_id AND (:before::uuid IS NULL OR id < :before)
     ORDER BY id DESC LIMIT :limit)
) AS sides
ORDER BY id DESC
LIMIT :limit
