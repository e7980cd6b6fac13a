-- Grant nodes what they may do for their attempts. A repeated grant lasts as long as the newest says.
INSERT INTO artefact_grant (attempt_id, node_id, account_id, access, digest, size_max_bytes, until)
SELECT * FROM unnest(
    :attempt_ids::uuid[], :node_ids::uuid[], :account_ids::uuid[], :accesses::text[], :digests::text[],
    :sizes::bigint[], :untils::timestamptz[]
)
ON CONFLICT (attempt_id, digest) DO UPDATE
SET node_id = excluded.node_id, account_id = excluded.account_id, size_max_bytes = excluded.size_max_bytes,
    until = excluded.until
