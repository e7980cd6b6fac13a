-- Count one more reference to these bytes, which are in storage. If several finish the same bytes at once, each counts.
INSERT INTO artefact_content (digest, size_bytes, refers) VALUES (:digest, :size_bytes, 1)
ON CONFLICT (digest) DO UPDATE SET refers = artefact_content.refers + 1, idle_since = NULL, left_by = NULL
