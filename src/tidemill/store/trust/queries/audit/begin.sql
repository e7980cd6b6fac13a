-- Begin an audit of a delivered result: its lease waits, and a copy of its task goes into the queue. The caller holds
-- the lease's row, so nobody begins a second audit.
WITH held AS (
    UPDATE lease SET judge_until = 'infinity'
    WHERE attempt_id = :attempt_id AND tries = :lease AND state = 'submitted'
    RETURNING attempt_id, task_id, owner_id, account_id, rank
), begun AS (
    INSERT INTO audit (id, of_task_id, owner_id, account_id, claimed, task_id, begun_at)
    SELECT h.attempt_id, h.task_id, h.owner_id, h.account_id, :claimed, :task_id, :now FROM held AS h
    ON CONFLICT DO NOTHING
    RETURNING id, of_task_id
), copied AS (
    INSERT INTO task (id, job_id, number, body, demand_id, cost_max_uc)
    SELECT :task_id, b.id, 0, t.body, t.demand_id, :cost_max_uc
    FROM begun AS b JOIN task AS t ON t.id = b.of_task_id
    RETURNING id, job_id
)
INSERT INTO task_queue (rank, task_id, job_id, account_id, failures, since)
SELECT h.rank, c.id, c.job_id, :the_pool, :failures, :now
FROM copied AS c, held AS h
RETURNING task_id
