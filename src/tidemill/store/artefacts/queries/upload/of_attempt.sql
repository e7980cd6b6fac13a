-- The upload of an attempt's result.
SELECT id FROM upload WHERE attempt_id = :attempt_id
