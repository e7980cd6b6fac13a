-- The models of the pool, by name.
SELECT m.id, m.name, m.source, m.licence, m.artefact_id, a.digest, a.size_bytes, m.memory_mib, m.gpu_memory_mib,
       m.added_by, m.added_at
FROM model AS m JOIN artefact AS a ON a.id = m.artefact_id
WHERE :after::text IS NULL OR lower(m.name) > lower(:after)
ORDER BY lower(m.name)
LIMIT :limit
