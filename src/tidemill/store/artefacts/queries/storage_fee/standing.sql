-- When an account was charged, and since when it has not paid. The caller holds its row.
SELECT charged_at, unpaid_since FROM artefact_usage WHERE account_id = :account_id
