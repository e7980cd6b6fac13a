-- Use up the token of a link. A token works once: if two use it at once, one gets the row.
DELETE FROM mailed_token WHERE link_sha256 = :link_sha256 AND purpose = ANY (:purposes::text[]) AND expires_at > :now
RETURNING id, purpose, address, account_id, password_hash, roles, language
