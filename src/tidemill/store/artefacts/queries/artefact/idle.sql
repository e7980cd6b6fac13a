-- Bytes without a reference, idle longest first.
SELECT digest, size_bytes, refers, idle_since FROM artefact_content
WHERE idle_since < :before
ORDER BY idle_since
LIMIT :limit
