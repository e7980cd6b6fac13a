-- Let attempts hold their tasks again, with a result that waits to be judged. Tasks that wait leave the queue; the caller
-- has locked their rows, or the leases of whoever held them.
WITH unqueued AS (
    DELETE FROM task_queue WHERE rank = ANY (:ranks::smallint[]) AND task_id = ANY (:task_ids::uuid[])
)
INSERT INTO lease (attempt_id, task_id, job_id, account_id, node_id, owner_id, rank, failures, tries, state, batch_id,
                   place, hourly_uc, quoted_ms, work_ms, offered_at, house, deadline_at, due_us)
SELECT r.attempt_id, r.task_id, r.job_id, r.account_id, r.node_id, r.owner_id, r.rank, r.failures, r.tries, r.state,
       r.batch_id, r.place, r.hourly_uc, r.quoted_ms, r.work_ms, r.offered_at, r.house, :now, l.listened_us
FROM listening AS l, unnest(
    :attempt_ids::uuid[], :task_ids::uuid[], :job_ids::uuid[], :account_ids::uuid[], :node_ids::uuid[], :owner_ids::uuid[],
    :ranks::smallint[], :failures::smallint[], :tries::smallint[], :states::text[], :batch_ids::uuid[], :places::smallint[],
    :hourly_uc::bigint[], :quoted_ms::bigint[], :work_ms::bigint[], :offered_at::timestamptz[], :houses::boolean[]
) AS r (attempt_id, task_id, job_id, account_id, node_id, owner_id, rank, failures, tries, state, batch_id, place,
        hourly_uc, quoted_ms, work_ms, offered_at, house)
