-- What an audit came to. In the transaction that settles the attempt, which is settled once.
UPDATE audit SET found = :found, verdict = :verdict, judged_at = :now
WHERE id = :attempt_id AND judged_at IS NULL
