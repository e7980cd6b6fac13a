-- What is left of a job's hold, and until when. Whoever changes the hold locks the job first.
SELECT h.amount_uc - h.captured_uc - h.released_uc AS left_uc, h.expires_at
FROM job AS j JOIN hold AS h ON h.id = j.hold_id WHERE j.id = :id
