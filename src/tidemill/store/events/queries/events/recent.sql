-- The event before the newest few: a reader who wants the current picture begins there.
SELECT generation, transaction::text::bigint AS transaction, number
FROM event
ORDER BY generation DESC, transaction DESC, number DESC
OFFSET :count LIMIT 1
