-- One job, of one account or of any, with the number of its tasks that wait and that nodes have.
SELECT j.id, j.account_id, j.state, j.closing, j.kind, j.asked, j.quote, j.quote_expires_at, j.budget_uc,
       coalesce((SELECT h.amount_uc - h.captured_uc - h.released_uc FROM hold AS h WHERE h.id = j.hold_id), 0) AS held_uc,
       j.tasks, j.completed, j.failed, j.cancelled,
       (SELECT count(*) FROM task_queue AS q WHERE q.job_id = j.id) AS waiting,
       (SELECT count(*) FROM lease AS l WHERE l.job_id = j.id) AS placed,
       j.spent_uc, j.made_at, j.confirmed_at, j.deadline_at, j.ended_at
FROM job AS j
WHERE j.id = :id AND (:owner::uuid IS NULL OR j.account_id = :owner)
