"""Pure decisions and the values they are made of. No clock, no randomness, no environment, no I/O."""
