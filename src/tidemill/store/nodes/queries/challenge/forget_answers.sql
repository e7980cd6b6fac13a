-- Delete the answers of a concluded challenge.
DELETE FROM challenge_answer WHERE challenge_id = :id
