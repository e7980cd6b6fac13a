-- Add to, or subtract from, the bytes an account keeps and is uploading. The caller holds the row.
UPDATE artefact_usage SET used_bytes = used_bytes + :used_bytes, reserved_bytes = reserved_bytes + :reserved_bytes
WHERE account_id = :account_id
