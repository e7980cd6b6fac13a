-- Until when a job's money is held.
SELECT h.expires_at FROM job AS j JOIN hold AS h ON h.id = j.hold_id WHERE j.id = :id
