-- All attempts that have something of a node, in one value: they are many, and asked for several times a second.
SELECT coalesce(string_agg(uuid_send(attempt_id), ''), '') AS attempt_ids
FROM lease WHERE state <> 'submitted'
