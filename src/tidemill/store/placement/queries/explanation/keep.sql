-- Keep the explanations of one placement tick. Their ids are new, so nothing is written twice.
INSERT INTO explanation (id, job_id, at, kind, policy, lower_wins, nodes, task_ids, node_ids, weighed)
SELECT id, job_id, timestamptz 'epoch' + at_us * interval '1 microsecond', kind, policy, lower_wins, nodes, task_ids,
       node_ids, weighed
FROM jsonb_to_recordset(:explanations::jsonb) AS e (
    id uuid, job_id uuid, at_us bigint, kind text, policy text, lower_wins boolean, nodes integer, task_ids uuid[],
    node_ids uuid[], weighed jsonb
)
