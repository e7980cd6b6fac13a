-- Lock a round: if two processes conclude its last two challenges at once, the second sees what the first did.
SELECT id FROM challenge_round WHERE id = :id FOR UPDATE
