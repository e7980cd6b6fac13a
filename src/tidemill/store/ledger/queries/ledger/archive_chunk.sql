-- Keep the ids of some archived entries, so that each id gets the same answer for ever.
INSERT INTO archived_entries (first_id, last_id, ids, fingerprints, refusals)
VALUES (:first_id, :last_id, :ids, :fingerprints, :refusals)
