-- Conclude a challenge if we still hold its lease. Otherwise nothing changes, and no row comes back.
UPDATE challenge SET state = :state, concluded_at = :now, lease_token = NULL, leased_until = NULL
WHERE id = :id AND lease_token = :token AND concluded_at IS NULL
RETURNING round_id
