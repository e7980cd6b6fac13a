-- Lock a round: of two who conclude its last two challenges at the same time, the second sees what the first did.
SELECT id FROM challenge_round WHERE id = :id FOR UPDATE
