-- Wait for the ledger's lock. Whoever has it knows the books until the end of the transaction; the number tells whether
-- they have changed.
SELECT lock_ledger() AS number
