-- Which of these digests the pool knows, referenced or not.
SELECT digest FROM artefact_content WHERE digest = ANY (:digests::text[])
