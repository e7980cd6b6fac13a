"""Models: what the pool serves."""
