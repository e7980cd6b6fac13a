-- Give out the next number to nothing but an archive's checkpoints. The ledger's lock is held.
SELECT setval('ledger_number', :number)
