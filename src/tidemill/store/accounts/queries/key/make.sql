-- Insert a new API key.
INSERT INTO api_key (id, account_id, name, role, scopes, prefix, sha256, networks, spending_cap_uc, made_at, expires_at,
                     first_id)
VALUES (:id, :account_id, :name, :role, :scopes, :prefix, :sha256, :networks, :spending_cap_uc, :now, :expires_at,
        :first_id)
