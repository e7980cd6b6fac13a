-- Retire the current data key: it seals nothing more. Its successor is added in the same transaction, so there is
-- always one.
UPDATE data_key SET retired_at = :now WHERE retired_at IS NULL
