-- An artefact goes. The caller holds its row and has counted who refers to it.
DELETE FROM artefact WHERE id = :id
