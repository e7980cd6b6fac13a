-- How nodes stand with their challenges: what was shown before a node was offline counts no more, and what was shown of
-- some devices not for others.
SELECT c.node_id, c.passed_at, c.refused, c.due_at,
       c.passed_at IS NOT NULL AND (p.back_online_at IS NULL OR c.passed_at >= p.back_online_at)
           AND NOT EXISTS (
               SELECT FROM device AS d WHERE d.node_id = c.node_id AND d.failing IS NULL AND d.measured_at IS NULL
           ) AS passed
FROM node_challenge AS c JOIN presence AS p ON p.node_id = c.node_id
WHERE c.node_id = ANY (:node_ids::uuid[])
