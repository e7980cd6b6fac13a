-- What a job will cost. A quote may be asked for again until the job is confirmed.
UPDATE job SET state = 'quoted', quote = :quote, quote_expires_at = :expires_at
WHERE id = :id AND state IN ('draft', 'quoted')
RETURNING id
