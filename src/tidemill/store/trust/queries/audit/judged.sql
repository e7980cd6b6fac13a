-- Store the outcome of an audit, in the transaction that settles the attempt. An attempt is settled once.
UPDATE audit SET found = :found, verdict = :verdict, judged_at = :now
WHERE id = :attempt_id AND judged_at IS NULL
