-- Releases that were made before under one of these ids.
SELECT id, hold_id, cause, false AS linked FROM hold_release WHERE id = ANY(:ids::uuid[])
