-- Reserve the next number for an archive's checkpoints. The caller holds the ledger's lock.
SELECT setval('ledger_number', :number)
