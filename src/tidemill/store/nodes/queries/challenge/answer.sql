-- Keep answers. If two answer the same step, the first counts, so no answer can be taken back.
INSERT INTO challenge_answer (challenge_id, device, step, part, place, body, received_at)
SELECT *, :received_at::timestamptz FROM unnest(
    :ids::uuid[], :devices::smallint[], :steps::text[], :parts::text[], :places::bigint[], :bodies::bytea[]
)
ON CONFLICT (challenge_id, device, step, part, place) DO NOTHING
