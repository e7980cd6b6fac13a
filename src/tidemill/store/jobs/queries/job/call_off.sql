-- Cancel a job that was never confirmed. The caller has locked it.
UPDATE job SET state = 'cancelled', closing = 'called_off', ended_at = :now WHERE id = :id
