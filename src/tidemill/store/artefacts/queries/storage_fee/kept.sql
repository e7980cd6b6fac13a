-- How much an account keeps apart from results of its jobs since then. The caller holds its row, so nothing is added.
SELECT coalesce(sum(greatest(size_bytes, :smallest_bytes)), 0)::bigint AS kept_bytes
FROM artefact
WHERE account_id = :account_id AND (purpose <> 'result' OR made_at < :results_since)
