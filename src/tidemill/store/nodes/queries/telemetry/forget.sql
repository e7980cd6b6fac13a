-- Take days of beats out of the database that ended before an instant. The function takes a lock of its own.
SELECT drop_days AS name FROM drop_days('telemetry', :before)
