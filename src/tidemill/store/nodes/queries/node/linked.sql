-- Nodes with a link, ordered by id: all of them, or some.
SELECT n.id, n.account_id, n.name, n.house, n.life, n.agent, n.machine, n.measured_cores, n.measured_mib,
       n.carries, n.rules, n.utc_offset_s, n.suspended_reason, n.wishes, n.joined_at, n.removed_at, n.removed_reason,
       p.linked_at, p.heard_at, p.offline_since
FROM node AS n JOIN presence AS p ON p.node_id = n.id
WHERE p.process_id IS NOT NULL AND n.removed_at IS NULL
  AND (:only::uuid[] IS NULL OR n.id = ANY (:only::uuid[])) AND (:after::uuid IS NULL OR n.id > :after)
ORDER BY n.id
LIMIT :limit
