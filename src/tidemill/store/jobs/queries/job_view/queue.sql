-- How many tasks wait, by rank; how many nodes have; how many jobs they belong to; and since when the oldest waits.
SELECT count(*) FILTER (WHERE rank = 0) AS high, count(*) FILTER (WHERE rank = 1) AS normal,
       count(*) FILTER (WHERE rank = 2) AS low, (SELECT count(*) FROM lease) AS placed,
       count(DISTINCT job_id) AS jobs, min(since) AS oldest_at
FROM task_queue
