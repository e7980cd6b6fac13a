-- What the attempts of a job printed after a cursor, oldest first. As in events/read.sql, nothing is returned that an
-- open transaction could still add to.
SELECT l.generation, l.transaction::text::bigint AS transaction, l.number, l.task, l.attempt_id, l.stream, l.text, l.at
FROM attempt_log AS l
WHERE l.job_id = :job_id
  AND (l.generation, l.transaction, l.number) > (:generation, (:transaction::bigint)::text::xid8, :number)
  AND (l.generation < (SELECT generation FROM pool) OR l.transaction < pg_snapshot_xmin(pg_current_snapshot()))
ORDER BY l.generation, l.transaction, l.number
LIMIT :limit
