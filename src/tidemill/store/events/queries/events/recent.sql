-- The event before the newest few: where a reader begins who wants to see how things stand.
SELECT generation, transaction::text::bigint AS transaction, number
FROM event
ORDER BY generation DESC, transaction DESC, number DESC
OFFSET :count LIMIT 1
