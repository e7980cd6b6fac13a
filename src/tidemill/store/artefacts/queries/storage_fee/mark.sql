-- Note how an account stands. The caller holds its row.
UPDATE artefact_usage SET charged_at = :charged_at, unpaid_since = :unpaid_since WHERE account_id = :account_id
