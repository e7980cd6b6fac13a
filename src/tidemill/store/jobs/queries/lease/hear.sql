-- Note that the pool has heard of attempts, only from the nodes that hold them. Each is looked up by its key, and two that
-- note the same attempt leave the first and the last instant.
UPDATE lease AS l SET begun_at = least(l.begun_at, w.first_at), heard_at = greatest(l.heard_at, w.last_at)
FROM unnest(:attempt_ids::uuid[], :node_ids::uuid[], :leases::bigint[], :first_ats::timestamptz[], :last_ats::timestamptz[])
    AS w (attempt_id, node_id, lease, first_at, last_at)
WHERE l.attempt_id = w.attempt_id AND l.node_id = w.node_id AND l.tries = w.lease
