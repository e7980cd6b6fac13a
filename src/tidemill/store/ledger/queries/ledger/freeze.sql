-- Freeze or unfreeze an account. Returns whether anything changed.
SELECT set_frozen(:account_id, :frozen) AS changed
