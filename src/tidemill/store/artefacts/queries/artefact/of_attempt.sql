-- What an attempt uploaded, and who keeps it. Read only: whoever changes it locks the account's sums first.
SELECT id, account_id FROM artefact WHERE attempt_id = :attempt_id
