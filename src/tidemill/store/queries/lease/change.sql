-- Leases go on in another state. The caller has locked them.
UPDATE lease AS l SET state = c.state, batch_id = c.batch_id, place = c.place
FROM unnest(:attempt_ids::text::uuid[], :states::text::text[], :batch_ids::text::uuid[], :places::text::smallint[])
    AS c (attempt_id, state, batch_id, place)
WHERE l.attempt_id = c.attempt_id
