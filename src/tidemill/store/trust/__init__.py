"""Results on their way to a verdict, in the database."""
