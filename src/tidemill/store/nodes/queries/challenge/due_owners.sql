-- Owners with an online node that is due for a challenge: it was never challenged, its time has come, it was offline,
-- or it has a device that was never measured. An owner's nodes are left alone during a round and for a while after it.
-- A node that has just lost its link is waited for, because a node that misses its owner's round has to start anew. A
-- node that has passed and is long overdue, or has something new, does not wait for it. Owners are ordered by id: a
-- caller that continues after the last one reaches everybody, even where some cannot be asked.
SELECT DISTINCT n.account_id
FROM node AS n JOIN presence AS p ON p.node_id = n.id LEFT JOIN node_challenge AS c ON c.node_id = n.id
WHERE n.removed_at IS NULL AND n.suspended_reason IS NULL AND n.machine IS NOT NULL
  AND p.process_id IS NOT NULL AND p.offline_since IS NULL
  AND EXISTS (SELECT FROM device AS d WHERE d.node_id = n.id AND d.failing IS NULL)
  AND (c.node_id IS NULL OR c.due_at <= :now OR p.back_online_at > c.begun_at
       OR (c.passed_at IS NOT NULL AND EXISTS (
               SELECT FROM device AS d WHERE d.node_id = n.id AND d.failing IS NULL AND d.measured_at IS NULL)))
  AND NOT EXISTS (
      SELECT FROM challenge_round AS r
      WHERE r.account_id = n.account_id AND (r.closed_at IS NULL OR r.closed_at > :rested_since))
  AND (c.passed_at IS NOT NULL AND (c.due_at <= :due_since OR c.due_at > :now)
       OR NOT EXISTS (
           SELECT FROM node AS o JOIN presence AS q ON q.node_id = o.id
           WHERE o.account_id = n.account_id AND o.removed_at IS NULL AND o.suspended_reason IS NULL
             AND q.process_id IS NULL AND q.offline_since IS NULL AND q.heard_at > :waited_since))
  AND (:after::uuid IS NULL OR n.account_id > :after)
ORDER BY n.account_id
LIMIT :limit
