-- The bytes that some artefact refers to, in the order of their digests, page by page. What is made or deleted between
-- two pages may be in it or not: who backs up reads all pages before and after the dump.
SELECT digest, size_bytes FROM artefact_content WHERE refers > 0 AND digest > :after ORDER BY digest LIMIT :limit
