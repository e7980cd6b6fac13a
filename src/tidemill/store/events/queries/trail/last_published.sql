-- The tip that was published last.
SELECT body ->> 'sha256' AS sha256
FROM event
WHERE kind = 'audit.head_published'
ORDER BY generation DESC, transaction DESC, number DESC
LIMIT 1
