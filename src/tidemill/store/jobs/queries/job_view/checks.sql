-- How many delivered results of a job wait for a verdict: all of them, those that an operator was asked about, those
-- whose task a house node has, and those that still wait for a house node.
SELECT count(*) FILTER (WHERE l.state = 'submitted') AS delivered,
       count(*) FILTER (WHERE u.asked_at IS NOT NULL) AS asked,
       count(*) FILTER (WHERE u.task_id IS NOT NULL AND u.asked_at IS NULL AND q.task_id IS NULL) AS rerun,
       count(*) FILTER (WHERE u.asked_at IS NULL AND q.task_id IS NOT NULL) AS wait_for_house
FROM lease AS l LEFT JOIN audit AS u ON u.id = l.attempt_id
LEFT JOIN task_queue AS q ON q.rank = l.rank AND q.task_id = u.task_id
WHERE l.job_id = :job_id
