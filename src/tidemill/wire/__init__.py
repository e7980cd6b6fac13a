"""What agents and the pool say to each other: messages, and the protocol of the link as state machines without I/O."""
