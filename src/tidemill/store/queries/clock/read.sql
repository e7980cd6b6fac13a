-- The server's time at this moment, not at the start of the transaction.
SELECT clock_timestamp() AS at
