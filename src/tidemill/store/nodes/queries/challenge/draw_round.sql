-- Note that the draw of a round was made. Returns no row if another process was quicker.
UPDATE challenge_round AS r
SET drawn_at = :now, open_by = :open_by, drawn_listened_us = l.listened_us,
    deaf = (:now::timestamptz - r.made_at) - (l.listened_us - r.made_listened_us) * interval '1 microsecond'
           > :slack_us * interval '1 microsecond'
FROM listening AS l
WHERE r.id = :id AND r.drawn_at IS NULL AND r.closed_at IS NULL
RETURNING r.deaf
