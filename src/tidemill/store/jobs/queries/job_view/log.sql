-- What the attempts of a job printed after a cursor, oldest first. As in events/read.sql, nothing is returned that an
-- open transaction could still add to. Where the customer expects a result, nothing is shown before the job has ended,
-- and then only of tasks whose results passed: who expects something wrong learns nothing for it. By then the pieces
-- are complete, so no cursor has passed any of them.
SELECT l.generation, l.transaction::text::bigint AS transaction, l.number, l.task, l.attempt_id, l.stream, l.text, l.at
FROM attempt_log AS l
WHERE l.job_id = :job_id
  AND (l.generation, l.transaction, l.number) > (:generation, (:transaction::bigint)::text::xid8, :number)
  AND (l.generation < (SELECT generation FROM pool) OR l.transaction < pg_snapshot_xmin(pg_current_snapshot()))
  AND NOT EXISTS (
      SELECT FROM task AS t JOIN job AS j ON j.id = t.job_id
      WHERE t.job_id = l.job_id AND t.number = l.task AND t.expected IS NOT NULL
        AND (t.ended IS DISTINCT FROM 'completed' OR j.ended_at IS NULL)
  )
ORDER BY l.generation, l.transaction, l.number
LIMIT :limit
