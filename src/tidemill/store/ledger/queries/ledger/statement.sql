-- The transfers of one account, newest first. Each side has its own index, in stretches of a million transfers, so both
-- are read only as far as needed.
SELECT number, id, at, kind, cause, counterpart_id, amount_uc
FROM (
    (SELECT number, id, at, kind, cause, credit_id AS counterpart_id, -amount_uc AS amount_uc
     FROM transfer
     WHERE debit_id = :account_id AND number < :before
     ORDER BY (number >> 20)::integer DESC, number DESC LIMIT :limit)
    UNION ALL
    (SELECT number, id, at, kind, cause, debit_id, amount_uc
     FROM transfer
     WHERE credit_id = :account_id AND number < :before
     ORDER BY (number >> 20)::integer DESC, number DESC LIMIT :limit)
) AS sides
ORDER BY number DESC
LIMIT :limit
