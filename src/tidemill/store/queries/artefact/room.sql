-- How much an account keeps and has under way. Its row is made if there is none, and is the caller's until its end: who
-- begins, finishes or deletes something of the same account waits here, so sums are never of two moments.
INSERT INTO artefact_usage (account_id) VALUES (:account_id)
ON CONFLICT (account_id) DO UPDATE SET used_bytes = artefact_usage.used_bytes
RETURNING used_bytes, reserved_bytes
