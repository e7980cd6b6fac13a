-- Forget bytes that storage has given up. Whoever has begun to refer to them since has finished them anew: they stay.
DELETE FROM artefact_content WHERE digest = :digest AND idle_since < :before
