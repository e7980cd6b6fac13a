"""Letters in the database."""
