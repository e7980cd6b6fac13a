-- Insert a new data key, unless there is a current one: if processes start at once, one makes the first key.
INSERT INTO data_key (id, wrapped, master_id, made_at)
VALUES (:id, :wrapped, :master_id, :now)
ON CONFLICT ((retired_at IS NULL)) WHERE retired_at IS NULL DO NOTHING
