-- Everything that a challenge's conclusion depends on, except the answers.
SELECT c.node_id, n.account_id, p.round_trip_ms, c.state, c.asked, c.draw, c.sent_at, k.late,
       r.deaf OR (:now::timestamptz - r.drawn_at) - (l.listened_us - r.drawn_listened_us) * interval '1 microsecond'
                 > :slack_us * interval '1 microsecond' AS deaf,
       coalesce(p.linked_at > c.sent_at, true) AS relinked
FROM challenge AS c
JOIN challenge_round AS r ON r.id = c.round_id
JOIN node AS n ON n.id = c.node_id
JOIN presence AS p ON p.node_id = c.node_id
JOIN node_challenge AS k ON k.node_id = c.node_id
CROSS JOIN listening AS l
WHERE c.id = :id AND c.lease_token = :token AND c.concluded_at IS NULL
