"""What work pays."""
