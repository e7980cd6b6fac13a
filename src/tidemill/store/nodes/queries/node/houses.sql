-- The house nodes of the pool, online or not, ordered by id.
SELECT n.id, n.account_id, n.name, n.house, n.life, n.agent, n.machine, n.measured_cores, n.measured_mib,
       n.carries, n.rules, n.utc_offset_s, n.suspended_reason, n.wishes, n.joined_at, n.removed_at, n.removed_reason,
       p.linked_at, p.heard_at, p.offline_since
FROM node AS n LEFT JOIN presence AS p ON p.node_id = n.id
WHERE n.house AND n.removed_at IS NULL
ORDER BY n.id
LIMIT :limit
