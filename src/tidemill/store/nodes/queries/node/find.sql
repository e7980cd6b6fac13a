-- One node of this owner, or of any owner if none is named.
SELECT n.id, n.account_id, n.name, n.house, n.life, n.agent, n.machine, n.measured_cores, n.measured_mib,
       n.carries, n.rules, n.utc_offset_s, n.suspended_reason, n.wishes, n.joined_at, n.removed_at, n.removed_reason,
       p.linked_at, p.heard_at, p.offline_since
FROM node AS n JOIN presence AS p ON p.node_id = n.id
WHERE n.id = :id AND (:owner::uuid IS NULL OR n.account_id = :owner)
