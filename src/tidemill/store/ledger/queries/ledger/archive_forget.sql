-- Checkpoints from before an archive stand on transfers that are gone; those of archives stand for themselves.
DELETE FROM ledger_checkpoint WHERE number < :number AND number NOT IN (SELECT number FROM ledger_archive)
