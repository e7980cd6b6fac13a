-- Free the links of processes that no longer run. SKIP LOCKED: a row that is being written is checked next time.
UPDATE presence AS p SET process_id = NULL, linked_at = NULL
WHERE p.node_id IN (
    SELECT q.node_id FROM presence AS q
    WHERE q.process_id IS NOT NULL
      AND NOT EXISTS (SELECT FROM process AS r WHERE r.id = q.process_id AND r.state = 'running')
    ORDER BY q.node_id LIMIT :limit
    FOR NO KEY UPDATE OF q SKIP LOCKED
)
RETURNING p.node_id
