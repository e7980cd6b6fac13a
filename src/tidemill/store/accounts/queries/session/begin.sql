-- Insert a session and its first refresh token.
WITH begun AS (
    INSERT INTO session (id, account_id, began_at, seen_at, fresh_at, expires_at, address, user_agent, remember,
                         second_factor)
    VALUES (:id, :account_id, :now, :now, :now, :expires_at, :address, :user_agent, :remember, :second_factor)
    RETURNING id
)
INSERT INTO refresh_token (sha256, session_id) SELECT :sha256, id FROM begun
