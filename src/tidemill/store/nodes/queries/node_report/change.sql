-- Write what nodes report of themselves; null leaves a column as it is. The caller has locked their rows.
UPDATE node AS n
SET machine = coalesce(c.machine, n.machine), carries = coalesce(c.carries, n.carries),
    rules = coalesce(c.rules, n.rules), utc_offset_s = coalesce(c.utc_offset_s, n.utc_offset_s), wishes = n.wishes + c.wishes
FROM unnest(:node_ids::uuid[], :machines::jsonb[], :carried::jsonb[], :rules::jsonb[], :offsets::integer[],
            :wishes::integer[])
     AS c (id, machine, carries, rules, utc_offset_s, wishes)
WHERE n.id = c.id
