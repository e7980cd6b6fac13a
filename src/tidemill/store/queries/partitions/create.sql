-- Make missing partitions. The function takes its own lock, so two processes never make the same one.
SELECT create_partitions AS name FROM create_partitions(:since, :until, :now)
