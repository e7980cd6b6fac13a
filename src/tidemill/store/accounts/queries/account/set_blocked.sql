-- Block (with a reason) or unblock (without). Returns no row if nothing changes.
UPDATE account SET blocked_reason = :reason
WHERE id = :id AND deleted_at IS NULL AND (blocked_reason IS NULL) <> (:reason::text IS NULL)
RETURNING id
