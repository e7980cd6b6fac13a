-- Mark nodes as offline that were silent for too long while we listened. SKIP LOCKED: a row that is being written is
-- being heard, and is checked again next time.
UPDATE presence AS p SET offline_since = :now
FROM (
    SELECT q.node_id, n.account_id
    FROM presence AS q JOIN node AS n ON n.id = q.node_id AND n.life <> 'deregistered'
    WHERE q.offline_since IS NULL AND q.heard_at IS NOT NULL AND q.heard_listened_us < :silent_below_us
    ORDER BY q.node_id LIMIT :limit
    FOR NO KEY UPDATE OF q SKIP LOCKED
) AS silent
WHERE p.node_id = silent.node_id
RETURNING silent.account_id, p.node_id, p.heard_at, p.heard_listened_us
