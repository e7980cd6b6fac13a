-- Record a login attempt.
INSERT INTO login_attempt (id, account_id, address_sha256, at, network, address, user_agent, result)
VALUES (:id, :account_id, :address_sha256, :now, :network, :address, :user_agent, :result)
