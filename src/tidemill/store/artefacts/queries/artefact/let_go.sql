-- Count one reference less to these bytes; without references they are idle.
UPDATE artefact_content SET refers = refers - 1, idle_since = CASE WHEN refers = 1 THEN :now::timestamptz END,
    left_by = CASE WHEN refers = 1 THEN :account_id::uuid END
WHERE digest = :digest
