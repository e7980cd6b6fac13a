-- How much an account keeps and has under way, and what of it is deleted and not gone from storage yet. Its row is made if there is none, and is the caller's until its end: who
-- begins, finishes or deletes something of the same account waits here, so sums are never of two moments.
INSERT INTO artefact_usage (account_id) VALUES (:account_id)
ON CONFLICT (account_id) DO UPDATE SET used_bytes = artefact_usage.used_bytes
RETURNING used_bytes, reserved_bytes,
    (SELECT coalesce(sum(size_bytes), 0)::bigint FROM artefact_content WHERE left_by = :account_id) AS leaving_bytes
