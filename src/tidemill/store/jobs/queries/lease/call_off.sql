-- Tell nodes to stop attempts.
INSERT INTO call_off (attempt_id, node_id, lease, reason, at)
SELECT c.attempt_id, c.node_id, c.lease, c.reason, :now
FROM unnest(:attempt_ids::text::uuid[], :node_ids::text::uuid[], :leases::text::smallint[], :reasons::text::text[])
    AS c (attempt_id, node_id, lease, reason)
ON CONFLICT DO NOTHING
