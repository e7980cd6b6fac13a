-- Tell owners' records what attempts came to. Rows are locked ordered by id, as everywhere, to avoid deadlocks.
INSERT INTO owner_record AS r (owner_id, verified, late, crashed, broke_its_word, wrong)
SELECT o.owner_id, o.verified, o.late, o.crashed, o.broke_its_word, o.wrong
FROM unnest(
    :owner_ids::text::uuid[], :verified::text::bigint[], :late::text::bigint[], :crashed::text::bigint[],
    :broke_its_word::text::bigint[], :wrong::text::bigint[]
) AS o (owner_id, verified, late, crashed, broke_its_word, wrong)
ORDER BY o.owner_id
ON CONFLICT (owner_id) DO UPDATE
SET verified = r.verified + excluded.verified, late = r.late + excluded.late, crashed = r.crashed + excluded.crashed,
    broke_its_word = r.broke_its_word + excluded.broke_its_word, wrong = r.wrong + excluded.wrong
