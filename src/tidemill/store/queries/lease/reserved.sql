-- Attempts at work, with what they were told and for whom.
SELECT l.attempt_id, l.node_id, t.body, l.account_id
FROM unnest(:attempt_ids::text::uuid[]) AS a (id)
JOIN lease AS l ON l.attempt_id = a.id JOIN task AS t ON t.id = l.task_id
WHERE l.state <> 'submitted'
