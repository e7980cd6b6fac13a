-- Insert the hashes of new recovery codes.
INSERT INTO recovery_code (account_id, sha256) SELECT :account_id, unnest(:sha256s::bytea[])
