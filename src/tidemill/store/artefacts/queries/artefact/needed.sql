-- How many unfinished tasks and models need an artefact. A result is needed until its attempt is judged; otherwise a
-- customer could delete it and not pay. The caller holds its row, so no task can be added meanwhile.
SELECT (SELECT count(*) FROM artefact_use WHERE artefact_id = :id)
     + (SELECT count(*) FROM model WHERE artefact_id = :id)
     + (SELECT count(*) FROM artefact AS a JOIN lease AS l ON l.attempt_id = a.attempt_id WHERE a.id = :id) AS needed
