-- Insert a new upload. The caller holds the account's sums and has checked that there is room.
INSERT INTO upload (id, account_id, begun_by, purpose, name, length_bytes, expected, attempt_id, expires_at)
VALUES (:id, :account_id, :begun_by, :purpose, :name, :length_bytes, :expected, :attempt_id, :expires_at)
