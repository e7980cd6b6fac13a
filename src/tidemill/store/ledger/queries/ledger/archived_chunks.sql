-- The rows of archived ids that may contain these ids.
SELECT DISTINCT a.first_id, a.last_id, a.ids, a.fingerprints, a.refusals
FROM unnest(:ids::uuid[]) AS asked (id)
JOIN archived_entries AS a ON a.first_id <= asked.id AND a.last_id >= asked.id
