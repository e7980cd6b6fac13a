-- Keep batches of receipts as nodes signed them.
INSERT INTO receipt_batch (id, node_id, body, signature, at)
SELECT b.id, b.node_id, b.body, b.signature, :now
FROM unnest(:ids::uuid[], :node_ids::uuid[], :bodies::bytea[], :signatures::bytea[]) AS b (id, node_id, body, signature)
