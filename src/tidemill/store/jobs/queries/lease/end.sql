-- End leases and record their attempts. The caller has locked them. An attempt that was given up and delivered after
-- all is recorded already. Each lease is looked up by itself, as in lease/lock.sql.
WITH ended AS (
    SELECT l.*, s.state AS ended, s.verdict, s.reason, s.paid_uc, s.transfer_id, s.batch_id AS given_id, s.place AS given_place
    FROM unnest(
        :attempt_ids::text::uuid[], :states::text::text[], :verdicts::text::text[], :reasons::text::text[],
        :paid_uc::text::bigint[], :transfer_ids::text::uuid[], :batch_ids::text::uuid[], :places::text::smallint[]
    ) AS s (attempt_id, state, verdict, reason, paid_uc, transfer_id, batch_id, place)
    CROSS JOIN LATERAL (SELECT * FROM lease WHERE lease.attempt_id = s.attempt_id LIMIT 1) AS l
), gone AS (
    DELETE FROM lease WHERE attempt_id = ANY (:attempt_ids::text::uuid[])
)
INSERT INTO attempt (id, task_id, job_id, node_id, owner_id, lease, state, verdict, reason, paid_uc, transfer_id, batch_id,
                     place, offered_at, ended_at, hourly_uc, quoted_ms, work_ms)
SELECT attempt_id, task_id, job_id, node_id, owner_id, tries, ended, nullif(verdict, ''), reason, paid_uc, transfer_id,
       given_id, given_place, offered_at, :now, hourly_uc, quoted_ms, work_ms
FROM ended
ON CONFLICT (id) DO UPDATE
SET state = excluded.state, verdict = excluded.verdict, reason = excluded.reason, paid_uc = excluded.paid_uc,
    transfer_id = excluded.transfer_id, batch_id = excluded.batch_id, place = excluded.place, ended_at = excluded.ended_at
