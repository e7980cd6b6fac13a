-- Bytes have arrived: extend the upload's deadline for the next ones. An upload that was ended at this moment stays
-- ended.
UPDATE upload SET expires_at = :expires_at WHERE id = :id AND artefact_id IS NULL AND expires_at > :now
