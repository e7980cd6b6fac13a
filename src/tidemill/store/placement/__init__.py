"""What placement reads and writes in the database."""
