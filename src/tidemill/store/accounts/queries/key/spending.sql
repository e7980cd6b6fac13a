-- The cap of a line of keys, and what it has spent; a key without a cap is never refused.
SELECT coalesce(f.spending_cap_uc, 0) AS spending_cap_uc, f.spent_uc
FROM api_key AS k JOIN api_key AS f ON f.id = k.first_id
WHERE k.id = :id
