"""What running a pool keeps in the database: processes, duties, switches, keys, answers, backups."""
