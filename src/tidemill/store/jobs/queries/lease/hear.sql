-- Note that the pool has heard of attempts, only from the nodes that hold them. Each is looked up by its key, and two that
-- note the same attempt leave the later instant.
UPDATE lease AS l SET heard_at = greatest(l.heard_at, w.at)
FROM unnest(:attempt_ids::uuid[], :node_ids::uuid[], :leases::bigint[], :ats::timestamptz[]) AS w (attempt_id, node_id, lease, at)
WHERE l.attempt_id = w.attempt_id AND l.node_id = w.node_id AND l.tries = w.lease
