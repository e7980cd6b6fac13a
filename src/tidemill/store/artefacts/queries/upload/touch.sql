-- Bytes have come: the upload waits for the next ones until then. One that was ended at this moment stays ended.
UPDATE upload SET expires_at = :expires_at WHERE id = :id AND artefact_id IS NULL AND expires_at > :now
