"""What a machine has and can do, as its agent reports it."""
