-- Move tasks from the queue to nodes, each under a lease. A task that has left the queue, or whose node has lost its
-- link, stays as it is: if two place one task, the one that locks and deletes its row wins. Each is looked up by
-- itself: the queue fills and empties, and the planner may still believe that it is empty.
WITH wanted AS (
    SELECT w.*
    FROM unnest(
        :ranks::text::smallint[], :task_ids::text::uuid[], :attempt_ids::text::uuid[], :node_ids::text::uuid[],
        :owner_ids::text::uuid[], :hourly_uc::text::bigint[], :quoted_ms::text::bigint[], :work_ms::text::bigint[],
        :houses::text::boolean[], :deadlines_us::text::bigint[]
    ) AS w (rank, task_id, attempt_id, node_id, owner_id, hourly_uc, quoted_ms, work_ms, house, deadline_us)
    JOIN presence AS p ON p.node_id = w.node_id
    WHERE p.process_id IS NOT NULL
), taken AS (
    SELECT w.attempt_id, q.task_id, q.job_id, q.account_id, w.node_id, w.owner_id, q.rank, q.failures, q.tries,
           w.hourly_uc, w.quoted_ms, w.work_ms, w.house, w.deadline_us
    FROM wanted AS w
    CROSS JOIN LATERAL (
        SELECT * FROM task_queue WHERE rank = w.rank AND task_id = w.task_id LIMIT 1 FOR UPDATE
    ) AS q
), gone AS (
    DELETE FROM task_queue
    WHERE rank = ANY (ARRAY(SELECT DISTINCT rank FROM taken)) AND task_id = ANY (ARRAY(SELECT task_id FROM taken))
)
INSERT INTO lease (attempt_id, task_id, job_id, account_id, node_id, owner_id, rank, failures, tries, hourly_uc, quoted_ms,
                   work_ms, house, offered_at, deadline_at, due_us)
SELECT attempt_id, task_id, job_id, account_id, node_id, owner_id, rank, failures, tries + 1, hourly_uc, quoted_ms,
       work_ms, house, :now, timestamptz 'epoch' + t.deadline_us * interval '1 microsecond',
       l.listened_us + t.deadline_us - (extract(epoch FROM :now::timestamptz) * 1000000)::bigint
FROM taken AS t, listening AS l
RETURNING attempt_id, number
