-- These tasks are over, and need nothing any more.
DELETE FROM artefact_use WHERE task_id = ANY (:task_ids::text::uuid[])
