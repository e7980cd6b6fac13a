-- The answers of a node in a challenge.
SELECT device, step, part, place, body, received_at FROM challenge_answer WHERE challenge_id = :id
