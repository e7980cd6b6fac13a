-- End an upload, and return it to whoever ended it. With a time, end it only if it is overdue by then: an upload that
-- received bytes meanwhile goes on.
DELETE FROM upload WHERE id = :id AND (:overdue_at::timestamptz IS NULL OR expires_at <= :overdue_at)
RETURNING id, account_id, begun_by, purpose, name, length_bytes, expected, attempt_id, expires_at, artefact_id
