-- The current data key seals nothing more. Its successor is added in the same transaction, so there always is one.
UPDATE data_key SET retired_at = :now WHERE retired_at IS NULL
