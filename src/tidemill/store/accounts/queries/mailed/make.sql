-- Insert what a letter's link and code will prove. Earlier tokens for the same purpose and address stay valid until
-- they expire.
INSERT INTO mailed_token (id, purpose, address, address_key, account_id, link_sha256, code, expires_at, password_hash,
                          roles, language)
VALUES (:id, :purpose, :address, :address_key, :account_id, :link_sha256, :code, :expires_at, :password_hash, :roles,
        :language)
