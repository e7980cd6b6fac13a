-- All attempts that use something of a node, in one value, because they are many and read several times a second.
SELECT coalesce(string_agg(uuid_send(attempt_id), ''), '') AS attempt_ids
FROM lease WHERE state <> 'submitted'
