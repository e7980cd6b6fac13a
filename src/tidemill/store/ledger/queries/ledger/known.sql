-- Which of these ids were answered before. Usually none: new ids lie at the end of each index, on one page.
SELECT id FROM transfer WHERE id = ANY(:ids::uuid[])
UNION ALL
SELECT id FROM hold WHERE id = ANY(:ids)
UNION ALL
SELECT id FROM hold_release WHERE id = ANY(:ids)
UNION ALL
SELECT id FROM refused_entry WHERE id = ANY(:ids)
