"""The owner's rules for a node, and when they let it work."""
