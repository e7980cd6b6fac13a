-- Take a duty that is due and that nobody holds. The upsert locks the row, so if many try at once exactly one gets it;
-- the token grows, so a holder who slept through its lease can no longer finish. Times written while the clock ran far
-- ahead are implausible, and are ignored.
INSERT INTO duty AS d (name, token, holder, expires_at)
VALUES (:name, 1, :holder, :expires_at)
ON CONFLICT (name) DO UPDATE SET token = d.token + 1, holder = :holder, expires_at = :expires_at
WHERE (d.expires_at IS NULL OR d.expires_at <= :now OR d.expires_at > :implausible)
  AND (d.done_at IS NULL OR d.done_at <= :due_since OR d.done_at > :implausible)
RETURNING name, token
