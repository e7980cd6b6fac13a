-- How many uploads of an account are under way. The caller holds its sums, so no other begins meanwhile.
SELECT count(*) AS uploads FROM upload WHERE account_id = :account_id AND artefact_id IS NULL
