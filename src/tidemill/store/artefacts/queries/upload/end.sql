-- End an upload, and return what it held to whoever ended it. With a time, end it only if it is overdue by then: an upload that
-- received bytes meanwhile goes on.
DELETE FROM upload WHERE id = :id AND (:overdue_at::timestamptz IS NULL OR expires_at <= :overdue_at)
RETURNING account_id, length_bytes, artefact_id
