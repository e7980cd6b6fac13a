-- Move leases to another state. The caller has locked them. Each is looked up by its key.
WITH given AS MATERIALIZED (
    SELECT :attempt_ids::text::uuid[] AS attempt_ids, :states::text::text[] AS states, :batch_ids::text::uuid[] AS batch_ids,
           :places::text::smallint[] AS places
)
UPDATE lease AS l
SET (state, batch_id, place) = (
    SELECT g.states[n.at], g.batch_ids[n.at], g.places[n.at]
    FROM given AS g CROSS JOIN LATERAL array_position(g.attempt_ids, l.attempt_id) AS n (at)
)
WHERE l.attempt_id = ANY (:attempt_ids::text::uuid[])
