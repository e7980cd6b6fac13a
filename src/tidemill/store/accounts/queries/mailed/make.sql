-- What a letter's link and code will prove. Earlier ones for the same purpose and address stay good until they end.
INSERT INTO mailed_token (id, purpose, address, address_key, account_id, link_sha256, code, expires_at, password_hash,
                          roles, language)
VALUES (:id, :purpose, :address, :address_key, :account_id, :link_sha256, :code, :expires_at, :password_hash, :roles,
        :language)
