-- Delete checkpoints older than an archive, because their transfers are gone. Checkpoints of archives need no
-- transfers.
DELETE FROM ledger_checkpoint WHERE number < :number AND number NOT IN (SELECT number FROM ledger_archive)
