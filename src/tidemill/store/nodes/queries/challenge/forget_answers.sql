-- Forget what was said in a challenge that is concluded.
DELETE FROM challenge_answer WHERE challenge_id = :id
