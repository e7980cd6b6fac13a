-- Accounts that keep more than is free and were not charged lately, or that have not paid. Operators are not charged: what
-- they keep is the pool's. Read only: whoever charges one locks its row and looks again.
SELECT u.account_id
FROM artefact_usage AS u JOIN account AS a ON a.id = u.account_id
WHERE (u.used_bytes > :free_bytes OR u.unpaid_since IS NOT NULL)
  AND (u.charged_at IS NULL OR u.charged_at <= :charged_before)
  AND a.deleted_at IS NULL AND NOT 'operator' = ANY (a.roles)
ORDER BY u.account_id
LIMIT :limit
