-- What a process still has to tell the nodes whose links it holds, and which links it has to close.
SELECT p.node_id, p.generation, n.wishes, n.rules::text AS rules, n.removed_at IS NOT NULL AS removed
FROM presence AS p JOIN node AS n ON n.id = p.node_id
WHERE p.process_id = :process_id AND n.wishes > p.told AND (:node_ids::uuid[] IS NULL OR p.node_id = ANY (:node_ids))
