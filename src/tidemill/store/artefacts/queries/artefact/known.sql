-- Which of these digests the pool knows of, whether something refers to them or not.
SELECT digest FROM artefact_content WHERE digest = ANY (:digests::text[])
