-- How many of the expected answers have arrived.
SELECT challenge_id, step, count(*) AS answers FROM challenge_answer
WHERE challenge_id = ANY (:ids::uuid[]) GROUP BY challenge_id, step
