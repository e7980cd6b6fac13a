-- Nodes as the pool has them, locked, ordered by id: an owner who changes rules in the pool waits for us, or we wait
-- for the owner. Presence is locked before.
SELECT id, account_id, life, machine, carries, rules, utc_offset_s
FROM node
WHERE id = ANY(:node_ids::uuid[])
ORDER BY id
FOR NO KEY UPDATE
