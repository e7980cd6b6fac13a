"""Commands about nodes and join tokens."""
