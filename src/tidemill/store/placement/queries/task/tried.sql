-- Which nodes tasks must not go to: for good those that failed them or were late, for a while those that declined or
-- were lost. House nodes may be asked again for an audit, whatever happened before. If nobody could tell whether a
-- result is right, only house nodes are asked. A failure, and a result that is not what its customer expects, are counted.
SELECT a.task_id,
       coalesce(array_agg(a.node_id) FILTER (
           WHERE (a.state IN ('judged', 'expired') AND u.task_id IS NULL)
              OR (a.state IN ('declined', 'lost') AND a.ended_at > :since)
       ), '{}') AS node_ids,
       coalesce(bool_or(a.verdict = 'review' AND NOT starts_with(a.reason, :unexpected)), false) AS for_house,
       count(*) FILTER (
           WHERE a.state = 'judged' AND (a.verdict IS NULL OR (a.verdict = 'review' AND starts_with(a.reason, :unexpected)))
       ) AS failures
FROM attempt AS a LEFT JOIN audit AS u ON u.task_id = a.task_id
WHERE a.task_id = ANY (:task_ids::uuid[])
GROUP BY a.task_id
