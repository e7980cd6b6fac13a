-- The answers of a node in a challenge.
SELECT body, received_at FROM challenge_answer WHERE challenge_id = :id
