-- Leases end, and their attempts are written down: the caller has locked them. An attempt that was given up and delivered
-- after all is written down already.
WITH said AS (
    SELECT * FROM unnest(
        :attempt_ids::text::uuid[], :states::text::text[], :verdicts::text::text[], :reasons::text::text[],
        :paid_uc::text::bigint[], :transfer_ids::text::uuid[], :batch_ids::text::uuid[], :places::text::smallint[]
    ) AS s (attempt_id, state, verdict, reason, paid_uc, transfer_id, batch_id, place)
), ended AS (
    DELETE FROM lease AS l USING said AS s WHERE l.attempt_id = s.attempt_id
    RETURNING l.attempt_id, l.task_id, l.job_id, l.node_id, l.owner_id, l.tries, l.offered_at, l.hourly_uc, l.quoted_ms,
              s.state, s.verdict, s.reason, s.paid_uc, s.transfer_id, s.batch_id, s.place
)
INSERT INTO attempt (id, task_id, job_id, node_id, owner_id, lease, state, verdict, reason, paid_uc, transfer_id, batch_id,
                     place, offered_at, ended_at, hourly_uc, quoted_ms)
SELECT attempt_id, task_id, job_id, node_id, owner_id, tries, state, nullif(verdict, ''), reason, paid_uc, transfer_id,
       batch_id, place, offered_at, :now, hourly_uc, quoted_ms
FROM ended
ON CONFLICT (id) DO UPDATE
SET state = excluded.state, verdict = excluded.verdict, reason = excluded.reason, paid_uc = excluded.paid_uc,
    transfer_id = excluded.transfer_id, batch_id = excluded.batch_id, place = excluded.place, ended_at = excluded.ended_at
