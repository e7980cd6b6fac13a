"""Running a pool: switches, backups, and the keys of its secrets."""
