-- Write checkpoints for accounts without a floor.
SELECT write_checkpoints(:now) AS written
