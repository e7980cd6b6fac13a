-- How much an account keeps and is uploading, and how much of it is deleted but still in storage. Inserts the row if
-- there is none, and locks it until the transaction ends: whoever begins, finishes or deletes something of the same
-- account waits here, so the sums always belong to one moment.
INSERT INTO artefact_usage (account_id) VALUES (:account_id)
ON CONFLICT (account_id) DO UPDATE SET used_bytes = artefact_usage.used_bytes
RETURNING used_bytes, reserved_bytes,
    (SELECT coalesce(sum(greatest(size_bytes, :smallest_bytes)), 0)::bigint FROM artefact_content WHERE left_by = :account_id) AS leaving_bytes
