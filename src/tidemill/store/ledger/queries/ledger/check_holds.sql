-- Holds whose captured and released amounts differ from their transfers and releases.
SELECT h.id
FROM hold AS h
LEFT JOIN (SELECT hold_id, sum(amount_uc) AS uc FROM transfer WHERE hold_id IS NOT NULL GROUP BY hold_id) AS c
       ON c.hold_id = h.id
LEFT JOIN (SELECT hold_id, sum(amount_uc) AS uc FROM hold_release GROUP BY hold_id) AS r ON r.hold_id = h.id
WHERE h.captured_uc <> coalesce(c.uc, 0) OR h.released_uc <> coalesce(r.uc, 0)
LIMIT 100
