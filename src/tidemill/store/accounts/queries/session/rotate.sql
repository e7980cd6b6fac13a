-- Replace the used refresh token with the next one. The caller holds the lock on both rows.
WITH spent AS (
    UPDATE refresh_token SET used = true WHERE session_id = :id AND NOT used RETURNING session_id
), seen AS (
    UPDATE session SET seen_at = :now, address = :address, user_agent = :user_agent WHERE id = :id
)
SELECT session_id FROM spent
