-- End tasks. Returns how many have ended; a task ends only once.
WITH ended AS (
    UPDATE task AS t SET ended = e.ended, attempt_id = e.attempt_id, ended_at = :now
    FROM unnest(:ids::text::uuid[], :ends::text::text[], :attempt_ids::text::uuid[]) AS e (id, ended, attempt_id)
    WHERE t.id = e.id AND t.ended IS NULL
    RETURNING t.id
)
SELECT count(*) AS tasks FROM ended
