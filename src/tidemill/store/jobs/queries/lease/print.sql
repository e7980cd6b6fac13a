-- Keep what attempts print, only from the nodes that hold them, and of each only so many bytes, counted here: a node
-- may send what it likes, and each piece counts with what its row takes. The leases are locked in the order of their
-- ids, so two batches count one after the other. What prints has begun: whoever reads it pays for its time. Nobody may
-- read what audits print.
WITH held AS MATERIALIZED (
    SELECT l.attempt_id, l.node_id, l.tries, l.job_id, l.task_id, l.printed_bytes FROM lease AS l
    WHERE l.attempt_id = ANY (:attempt_ids::uuid[])
    ORDER BY l.attempt_id FOR UPDATE
), counted AS (
    SELECT p.id, h.job_id, h.attempt_id, h.task_id, p.text, p.position, p.begun_at, octet_length(p.text) + :row_bytes AS bytes,
           h.printed_bytes + sum(octet_length(p.text) + :row_bytes) OVER (
               PARTITION BY h.attempt_id ORDER BY p.position
           ) AS total_bytes
    FROM unnest(:ids::uuid[], :attempt_ids::uuid[], :node_ids::uuid[], :leases::bigint[], :texts::text[],
                :begun_ats::timestamptz[])
        WITH ORDINALITY AS p (id, attempt_id, node_id, lease, text, begun_at, position)
    JOIN held AS h ON h.attempt_id = p.attempt_id AND h.node_id = p.node_id AND h.tries = p.lease
), noted AS (
    UPDATE lease AS l
    SET begun_at = least(l.begun_at, s.begun_at), heard_at = :now, printed_bytes = l.printed_bytes + s.bytes
    FROM (
        SELECT attempt_id, min(begun_at) AS begun_at,
               coalesce(sum(bytes) FILTER (WHERE total_bytes <= :bytes_max), 0) AS bytes
        FROM counted GROUP BY attempt_id
    ) AS s
    WHERE l.attempt_id = s.attempt_id
)
INSERT INTO attempt_log (id, job_id, attempt_id, task, stream, text, at, generation)
SELECT c.id, c.job_id, c.attempt_id, t.number, 'out', c.text, :now, (SELECT generation FROM pool)
FROM counted AS c JOIN task AS t ON t.id = c.task_id JOIN job AS j ON j.id = c.job_id
WHERE c.total_bytes <= :bytes_max
ORDER BY c.position
