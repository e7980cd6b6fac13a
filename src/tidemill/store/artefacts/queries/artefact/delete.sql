-- Delete an artefact. The caller holds its row and has counted the references to it.
DELETE FROM artefact WHERE id = :id
