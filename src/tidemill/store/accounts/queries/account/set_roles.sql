-- Set the roles. The caller holds the account's lock.
UPDATE account SET roles = :roles WHERE id = :id
