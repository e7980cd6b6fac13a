"""Jobs, tasks and attempts in the database."""
