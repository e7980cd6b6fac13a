-- Every data key, wrapped, oldest first.
SELECT id, wrapped, master_id, retired_at IS NULL AS current FROM data_key ORDER BY made_at, id
