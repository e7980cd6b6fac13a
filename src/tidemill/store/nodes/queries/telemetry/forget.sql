-- Drop the days of beats that ended before an instant. The function takes its own lock.
SELECT drop_days AS name FROM drop_days('telemetry', :before)
