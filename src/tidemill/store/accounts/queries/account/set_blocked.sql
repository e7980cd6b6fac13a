-- Block (with a reason) or unblock (without). No row comes back when it stood so already.
UPDATE account SET blocked_reason = :reason
WHERE id = :id AND deleted_at IS NULL AND (blocked_reason IS NULL) <> (:reason::text IS NULL)
RETURNING id
