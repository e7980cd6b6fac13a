-- How much an account keeps and is uploading, and since when it has not paid.
SELECT used_bytes, reserved_bytes, unpaid_since FROM artefact_usage WHERE account_id = :account_id
