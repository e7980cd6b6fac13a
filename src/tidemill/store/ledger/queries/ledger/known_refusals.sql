-- Entries that were refused before under one of these ids.
SELECT id, entry, refusal FROM refused_entry WHERE id = ANY(:ids::uuid[])
