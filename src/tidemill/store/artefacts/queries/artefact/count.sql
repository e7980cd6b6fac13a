-- Add to what an account keeps and has under way, or take from it. The caller holds the row.
UPDATE artefact_usage SET used_bytes = used_bytes + :used_bytes, reserved_bytes = reserved_bytes + :reserved_bytes
WHERE account_id = :account_id
