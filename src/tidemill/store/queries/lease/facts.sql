-- What a receipt is held against: whose attempt it is, of which task, and the result that the customer expects.
SELECT l.attempt_id, l.task_id, l.node_id, l.owner_id, l.failures, l.tries, l.offered_at, l.quoted_ms, t.expected
FROM unnest(:attempt_ids::text::uuid[]) AS a (id)
JOIN lease AS l ON l.attempt_id = a.id JOIN task AS t ON t.id = l.task_id
