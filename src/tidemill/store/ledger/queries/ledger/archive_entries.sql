-- Every entry of a month, ordered by id, as the archive's file has it: the entry and its outcome.
SELECT id, jsonb_build_object('shape', 'Transfer', 'id', id, 'debit_id', debit_id, 'credit_id', credit_id,
           'amount_uc', amount_uc, 'currency', currency, 'kind', kind, 'cause', cause, 'hold_id', hold_id) AS entry,
       jsonb_build_object('at', at, 'number', number) AS became
FROM transfer WHERE id >= :first_id AND id < :end_id
UNION ALL
SELECT id, jsonb_build_object('shape', 'Hold', 'id', id, 'account_id', account_id, 'amount_uc', amount_uc,
           'currency', currency, 'expires_at', (extract(epoch FROM expires_at) * 1000000)::bigint, 'cause', cause),
       jsonb_build_object('at', at, 'captured_uc', captured_uc, 'released_uc', released_uc)
FROM hold WHERE id >= :first_id AND id < :end_id
UNION ALL
SELECT id, jsonb_build_object('shape', 'Release', 'id', id, 'hold_id', hold_id, 'cause', cause),
       jsonb_build_object('at', at, 'amount_uc', amount_uc)
FROM hold_release WHERE id >= :first_id AND id < :end_id
UNION ALL
SELECT id, entry, jsonb_build_object('at', at, 'refusal', refusal)
FROM refused_entry WHERE id >= :first_id AND id < :end_id
ORDER BY id
