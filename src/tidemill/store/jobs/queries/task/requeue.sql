-- Put tasks back into the queue. Only the transaction that ended their leases can do this.
INSERT INTO task_queue (rank, task_id, job_id, account_id, failures, tries, since)
SELECT q.rank, q.task_id, q.job_id, q.account_id, q.failures, q.tries, :now
FROM unnest(
    :ranks::text::smallint[], :task_ids::text::uuid[], :job_ids::text::uuid[], :account_ids::text::uuid[],
    :failures::text::smallint[], :tries::text::smallint[]
) AS q (rank, task_id, job_id, account_id, failures, tries)
