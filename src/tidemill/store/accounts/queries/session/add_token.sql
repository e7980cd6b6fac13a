-- The newest refresh token of a session; a partial unique index lets there be one.
INSERT INTO refresh_token (sha256, session_id) VALUES (:sha256, :id)
