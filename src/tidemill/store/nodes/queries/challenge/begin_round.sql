-- Begin a round, unless the owner has one already: if two processes try, one gets a row.
INSERT INTO challenge_round (id, account_id, made_at, commit_by, made_listened_us)
SELECT :id, :account_id, :now, :commit_by, listened_us FROM listening
ON CONFLICT (account_id) WHERE closed_at IS NULL DO NOTHING
RETURNING id
