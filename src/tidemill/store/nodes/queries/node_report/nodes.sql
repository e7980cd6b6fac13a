-- What the pool has of nodes, locked in the order of their ids: an owner who changes rules in the pool waits, or is
-- waited for. Presence is locked before.
SELECT id, account_id, life, machine, carries, rules, utc_offset_s
FROM node
WHERE id = ANY(:node_ids::uuid[])
ORDER BY id
FOR NO KEY UPDATE
