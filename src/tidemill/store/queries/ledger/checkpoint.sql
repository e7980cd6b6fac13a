-- Write checkpoints for accounts without a floor.
SELECT write_checkpoints(:until, :now) AS written
