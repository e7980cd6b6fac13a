-- Set the state of verification. The caller holds the account's lock.
UPDATE account SET kyc = :kyc, kyc_reason = :reason WHERE id = :id
