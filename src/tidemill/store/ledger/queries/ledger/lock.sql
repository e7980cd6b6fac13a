-- Wait for the ledger's lock. Its holder knows the books until the transaction ends. The number tells whether they have
-- changed.
SELECT lock_ledger() AS number
