-- Have the house execute a task once more, after its result differed from the audited one. Only once: the audit remembers
-- the first result. The caller holds the lease's row, so nobody begins it a second time.
WITH held AS (
    UPDATE lease SET judge_until = 'infinity'
    WHERE attempt_id = :attempt_id AND tries = :lease AND state = 'submitted'
    RETURNING attempt_id, rank
), repeated AS (
    UPDATE audit AS a SET task_id = :task_id, first_found = :found, begun_at = :now, ended_at = NULL
    FROM held AS h WHERE a.id = h.attempt_id AND a.first_found IS NULL
    RETURNING a.id, a.of_task_id
), copied AS (
    INSERT INTO task (id, job_id, number, body, demand_id, cost_max_uc)
    SELECT :task_id, r.id, 1, t.body, t.demand_id, :cost_max_uc
    FROM repeated AS r JOIN task AS t ON t.id = r.of_task_id
    RETURNING id, job_id
)
INSERT INTO task_queue (rank, task_id, job_id, account_id, failures, since)
SELECT h.rank, c.id, c.job_id, :the_pool, :failures, :now
FROM copied AS c, held AS h
RETURNING task_id
