-- Add to what a line of keys has spent, if its cap allows it. Concurrent spenders wait for each other on the first
-- key's row.
UPDATE api_key SET spent_uc = spent_uc + :amount_uc
WHERE id = (SELECT first_id FROM api_key WHERE id = :id)
  AND (spending_cap_uc IS NULL OR spent_uc + :amount_uc <= spending_cap_uc)
RETURNING spent_uc
