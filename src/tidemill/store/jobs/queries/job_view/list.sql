-- Jobs of one account or of all, in one state or any, newest first. Waiting tasks are counted only for this page.
SELECT j.id, j.account_id, j.state, j.closing, j.kind, j.asked, j.quote, j.quote_expires_at, j.budget_uc,
       coalesce((SELECT h.amount_uc - h.captured_uc - h.released_uc FROM hold AS h WHERE h.id = j.hold_id), 0) AS held_uc,
       j.tasks, j.completed, j.failed, j.cancelled,
       coalesce(q.waiting, 0) AS waiting, coalesce(l.placed, 0) AS placed,
       j.spent_uc, j.made_at, j.confirmed_at, j.deadline_at, j.ended_at
FROM (
    SELECT * FROM job
    WHERE (:owner::uuid IS NULL OR account_id = :owner) AND (:state::text IS NULL OR state = :state)
      AND (:after::uuid IS NULL OR id < :after)
    ORDER BY id DESC LIMIT :limit
) AS j
LEFT JOIN (SELECT job_id, count(*) AS waiting FROM task_queue GROUP BY job_id) AS q ON q.job_id = j.id
LEFT JOIN (SELECT job_id, count(*) AS placed FROM lease GROUP BY job_id) AS l ON l.job_id = j.id
ORDER BY j.id DESC
