-- Insert a new join token.
INSERT INTO join_token (id, account_id, name, sha256, house, labels, uses_max, made_at, expires_at)
VALUES (:id, :account_id, :name, :sha256, :house, :labels, :uses_max, :made_at, :expires_at)
