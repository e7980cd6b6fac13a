-- Keep what attempts print, only from the nodes that hold them. Nobody may read what audits print.
INSERT INTO attempt_log (id, job_id, attempt_id, task, stream, text, at, generation)
SELECT p.id, l.job_id, l.attempt_id, t.number, 'out', p.text, :now, (SELECT generation FROM pool)
FROM unnest(:ids::uuid[], :attempt_ids::uuid[], :node_ids::uuid[], :leases::bigint[], :texts::text[])
    WITH ORDINALITY AS p (id, attempt_id, node_id, lease, text, position)
JOIN lease AS l ON l.attempt_id = p.attempt_id AND l.node_id = p.node_id AND l.tries = p.lease
JOIN task AS t ON t.id = l.task_id JOIN job AS j ON j.id = l.job_id
ORDER BY p.position
