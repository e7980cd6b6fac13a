-- A process says goodbye.
UPDATE process SET state = 'stopped', seen_at = :now WHERE id = :id AND state <> 'stopped' RETURNING id
