-- Give nodes to a process, each with the next generation: messages from an older link change nothing. The caller has
-- locked the rows of known nodes; nobody else can see a newcomer's row yet.
INSERT INTO presence AS p
    (node_id, generation, instance, told, told_until, process_id, linked_at, heard_at, heard_listened_us)
SELECT u.node_id, 1, u.instance, u.told, u.told_until, :process_id, :now, :now, l.listened_us
FROM unnest(:node_ids::uuid[], :instances::uuid[], :tolds::bigint[], :told_untils::timestamptz[])
     AS u (node_id, instance, told, told_until), listening AS l
ON CONFLICT (node_id) DO UPDATE
SET generation = p.generation + 1, instance = excluded.instance, told = excluded.told,
    told_until = coalesce(excluded.told_until, p.told_until), process_id = excluded.process_id,
    linked_at = excluded.linked_at, heard_at = excluded.heard_at, heard_listened_us = excluded.heard_listened_us
RETURNING node_id, generation, received
