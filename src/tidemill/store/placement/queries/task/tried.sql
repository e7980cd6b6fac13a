-- Which nodes tasks must not go to: for good those that failed them or were late, for a while those that declined or
-- were lost; that while grows with the square of how often they did, to a day. House nodes may be asked again for an audit,
-- whatever happened before. If nobody could tell whether a result is right, only house nodes are asked, unless they were waited for in vain. A failure, and a
-- result that is not what its customer expects, are counted.
WITH tried AS (
    SELECT a.task_id, a.node_id,
           bool_or(a.state IN ('judged', 'expired') AND u.task_id IS NULL) AS is_out,
           max(a.ended_at) FILTER (WHERE a.state IN ('declined', 'lost')) AS away_at,
           count(*) FILTER (WHERE a.state IN ('declined', 'lost')) AS away,
           bool_or(
               a.verdict = 'review' AND NOT starts_with(a.reason, :unexpected)
               AND NOT starts_with(a.reason, :nobody_looked)
           ) AS for_house,
           count(*) FILTER (
               WHERE a.state = 'judged'
                 AND (a.verdict IS NULL OR (a.verdict = 'review' AND starts_with(a.reason, :unexpected)))
           ) AS failures
    FROM attempt AS a LEFT JOIN audit AS u ON u.task_id = a.task_id
    WHERE a.task_id = ANY (:task_ids::uuid[])
    GROUP BY a.task_id, a.node_id
)
SELECT task_id,
       coalesce(array_agg(node_id) FILTER (
           WHERE is_out OR away_at > :now::timestamptz - least(interval '1 day', away * away * :again_s * interval '1 second')
       ), '{}') AS node_ids,
       coalesce(bool_or(for_house), false) AS for_house,
       sum(failures)::bigint AS failures
FROM tried
GROUP BY task_id
