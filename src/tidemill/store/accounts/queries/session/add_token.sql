-- Insert the newest refresh token of a session. A partial unique index allows only one.
INSERT INTO refresh_token (sha256, session_id) VALUES (:sha256, :id)
