"""Running a pool: switches, processes, backups, keys, first steps, health."""
