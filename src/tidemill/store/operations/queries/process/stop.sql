-- Note that a process has stopped.
UPDATE process SET state = 'stopped', seen_at = :now WHERE id = :id AND state <> 'stopped' RETURNING id
