-- Attempts at work, with what they were told.
SELECT l.attempt_id, l.node_id, t.body
FROM unnest(:attempt_ids::text::uuid[]) AS a (id)
JOIN lease AS l ON l.attempt_id = a.id JOIN task AS t ON t.id = l.task_id
WHERE l.state <> 'submitted'
