"""What commands print and ask at a terminal."""
