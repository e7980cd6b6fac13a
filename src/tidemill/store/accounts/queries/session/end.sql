-- End sessions of an account: one, all but one, or all. Sessions that are over keep their end.
UPDATE session SET ended_at = :now, ended_why = :why
WHERE account_id = :account_id AND ended_at IS NULL
  AND (:only::uuid IS NULL OR id = :only) AND (:but::uuid IS NULL OR id <> :but)
RETURNING id
