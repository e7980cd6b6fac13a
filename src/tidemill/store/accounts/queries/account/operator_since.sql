-- Since when an account has been an operator's; no row if it is none. FOR SHARE: nobody takes the role away before the
-- transaction ends.
SELECT operator_since FROM account
WHERE id = :id AND operator_since IS NOT NULL AND blocked_reason IS NULL AND deleted_at IS NULL
FOR SHARE
