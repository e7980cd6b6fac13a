-- Note how far the reports of nodes have arrived, together with their effects. The caller has locked their rows.
UPDATE presence AS p
SET received = r.received, told_until = coalesce(r.told_until, p.told_until),
    past_until = coalesce(r.past_until, p.past_until)
FROM unnest(:node_ids::uuid[], :receiveds::bigint[], :told_untils::timestamptz[], :past_untils::timestamptz[])
     AS r (node_id, received, told_until, past_until)
WHERE p.node_id = r.node_id
