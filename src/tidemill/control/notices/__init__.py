"""What the pool sends out: letters."""
