-- The results about which an operator is asked, the oldest first; or one of them.
SELECT a.id AS attempt_id, l.node_id, a.owner_id, a.account_id AS customer_id, l.job_id, l.task_id, a.doubt, a.asked_at
FROM audit AS a JOIN lease AS l ON l.attempt_id = a.id
WHERE a.asked_at IS NOT NULL AND a.decided IS NULL
  AND (:after::uuid IS NULL OR a.id > :after) AND (:attempt_id::uuid IS NULL OR a.id = :attempt_id)
ORDER BY a.id LIMIT :limit
