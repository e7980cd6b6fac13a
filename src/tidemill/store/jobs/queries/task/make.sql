-- Insert the tasks of a job that is confirmed in this transaction; nobody sees them before it commits.
WITH made AS (
    INSERT INTO task (id, job_id, number, body, demand_id, expected, cost_max_uc)
    SELECT t.id, :job_id, t.number - 1, t.body, t.demand_id, t.expected, t.cost_max_uc
    FROM unnest(
        :ids::text::uuid[], :bodies::bytea[], :demand_ids::text::uuid[], :expected::bytea[], :costs_max_uc::text::bigint[]
    ) WITH ORDINALITY AS t (id, body, demand_id, expected, cost_max_uc, number)
)
INSERT INTO task_queue (rank, task_id, job_id, account_id, since)
SELECT :rank, t.id, :job_id, :account_id, :now
FROM unnest(:ids::text::uuid[]) AS t (id)
