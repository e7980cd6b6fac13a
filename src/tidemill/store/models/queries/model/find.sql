-- One model, by its name in any case.
SELECT m.id, m.name, m.source, m.licence, m.artefact_id, a.digest, a.size_bytes, m.memory_mib, m.gpu_memory_mib,
       m.added_by, m.added_at
FROM model AS m JOIN artefact AS a ON a.id = m.artefact_id
WHERE lower(m.name) = lower(:name)
