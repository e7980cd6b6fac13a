-- Note that these tasks ended and need no artefact any more.
DELETE FROM artefact_use WHERE task_id = ANY (:task_ids::text::uuid[])
