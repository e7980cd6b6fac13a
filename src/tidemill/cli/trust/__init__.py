"""Commands about trust."""
