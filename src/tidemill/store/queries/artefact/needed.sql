-- How many unfinished tasks and models need an artefact. The caller holds its row, so none can be added meanwhile.
SELECT (SELECT count(*) FROM artefact_use WHERE artefact_id = :id)
     + (SELECT count(*) FROM model WHERE artefact_id = :id) AS needed
