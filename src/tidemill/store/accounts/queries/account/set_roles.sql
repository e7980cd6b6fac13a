-- Set the roles. Who was an operator before stays one since then. The caller holds the account's lock.
UPDATE account
SET roles = :roles, operator_since = CASE WHEN 'operator' = ANY (:roles::text[]) THEN coalesce(operator_since, :now) END
WHERE id = :id
