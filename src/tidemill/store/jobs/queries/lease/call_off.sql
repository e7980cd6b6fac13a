-- Tell nodes to stop attempts.
INSERT INTO call_off (attempt_id, node_id, lease, reason, at)
SELECT c.attempt_id, c.node_id, c.lease, :reason, :now
FROM unnest(:attempt_ids::text::uuid[], :node_ids::text::uuid[], :leases::text::smallint[])
    AS c (attempt_id, node_id, lease)
ON CONFLICT DO NOTHING
