-- Freeze or unfreeze an account; whether that changed anything.
SELECT set_frozen(:account_id, :frozen) AS changed
