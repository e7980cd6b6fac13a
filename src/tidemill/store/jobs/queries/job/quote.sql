-- Set what a job will cost. A customer may ask for a new quote until the job is confirmed.
UPDATE job SET state = 'quoted', quote = :quote, quote_expires_at = :expires_at
WHERE id = :id AND state IN ('draft', 'quoted')
RETURNING id
