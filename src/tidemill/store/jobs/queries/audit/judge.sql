-- Store the outcomes of audits, in the transaction that settles the audited attempts. An attempt is settled once.
UPDATE audit AS a SET found = j.found, verdict = j.verdict, judged_at = :now
FROM unnest(:attempt_ids::uuid[], :found::bytea[], :verdicts::text[]) AS j (attempt_id, found, verdict)
WHERE a.id = j.attempt_id AND a.judged_at IS NULL
