-- Delete demands that no open task has had for a while. A job that is confirmed at this moment holds the row or has renewed
-- it: then it is skipped, or no longer old.
WITH needed AS (
    SELECT t.demand_id
    FROM (SELECT task_id FROM task_queue UNION ALL SELECT task_id FROM lease) AS o JOIN task AS t ON t.id = o.task_id
), old AS (
    SELECT id FROM demand
    WHERE used_at < :before AND id NOT IN (SELECT demand_id FROM needed)
    ORDER BY id LIMIT :limit FOR UPDATE SKIP LOCKED
)
DELETE FROM demand WHERE id IN (SELECT id FROM old) AND used_at < :before
RETURNING id
