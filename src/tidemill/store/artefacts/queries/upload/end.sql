-- An upload is over. Answers what it was, to whoever ended it. With a time, only if it is overdue by then: one that got
-- bytes meanwhile goes on.
DELETE FROM upload WHERE id = :id AND (:overdue_at::timestamptz IS NULL OR expires_at <= :overdue_at)
RETURNING id, account_id, begun_by, purpose, name, length_bytes, expected, attempt_id, expires_at, artefact_id
