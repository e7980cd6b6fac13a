-- Note what attempts that were over get after all. The caller has locked their task.
UPDATE attempt AS a SET paid_uc = w.paid_uc, transfer_id = w.transfer_id
FROM unnest(:attempt_ids::uuid[], :paid_uc::bigint[], :transfer_ids::uuid[]) AS w (id, paid_uc, transfer_id)
WHERE a.id = w.id
