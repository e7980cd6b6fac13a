-- Forget bytes that storage has deleted. If somebody refers to them again, they were uploaded anew, and the row stays.
DELETE FROM artefact_content WHERE digest = :digest AND idle_since < :before
